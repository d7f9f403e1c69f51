/*-------------------------------------------------------------------------
 *
 * euno_epoch.c
 *	  Epoch-based reclamation across processes (see euno_epoch.h).
 *
 * Why it is safe.  A reader stores its pin, then (full barrier) loads
 * pointers.  Who frees a node has unlinked it, then (full barrier) advances
 * the epoch from e to e + 1 and looks at the pins.  Either it sees the
 * reader's pin, or the reader's loads come after the unlinking and cannot
 * find the node.  A pin greater than e was taken from an epoch that began
 * after the unlinking, so its reader cannot find the node either.
 *
 *-------------------------------------------------------------------------
 */
#include "core/euno_epoch.h"

#include "core/euno_shared.h"

/* Bytes of shared memory for this many slots; align to 128. */
size_t
euno_epochs_size(uint32_t nslots)
{
	return sizeof(EunoEpochs) + (size_t) nslots * sizeof(EunoEpochSlot);
}

/* Only while no other process uses the struct. */
void
euno_epochs_init(EunoEpochs *epochs, uint32_t nslots)
{
	memset(epochs, 0, euno_epochs_size(nslots));
	epochs->current = 1;
	epochs->nslots = nslots;
}

void
euno_epoch_enter(EunoProcess *process)
{
	EunoEpochs *epochs = process->epochs;

	if (process->depth++ > 0 || EUNO_ALONE)
		return;

	/*
	 * The exchange is the full barrier between the pin and the pointer loads
	 * that follow.  A pin that is already out of date by now only delays
	 * reclamation.
	 */
	(void) euno_exchange64_full(&epochs->slots[process->slot].pinned,
								euno_load64_acquire(&epochs->current));
	euno_fence_after_rmw();
}

void
euno_epoch_exit(EunoProcess *process)
{
	if (--process->depth > 0 || EUNO_ALONE)
		return;

	/* Release: our loads from the nodes come before anyone's reuse of them. */
	euno_store64_release(&process->epochs->slots[process->slot].pinned, 0);
}

uint64_t
euno_epoch_retire(EunoEpochs *epochs)
{
	uint64_t	retired = euno_add64_full(&epochs->current, 1);

	/* The unlinking comes before the look at the pins (see above). */
	euno_fence_after_rmw();
	return retired;
}

bool
euno_epoch_passed(EunoEpochs *epochs, uint64_t retired)
{
	for (uint32_t i = 0; i < epochs->nslots; i++)
	{
		uint64_t	pinned = euno_load64_full(&epochs->slots[i].pinned);

		if (pinned != 0 && pinned <= retired)
			return false;
	}
	return true;
}

void
euno_process_reset(EunoProcess *process, uint32_t depth)
{
	if (process->depth > 0 && depth == 0)
		euno_store64_release(&process->epochs->slots[process->slot].pinned, 0);
	process->depth = depth;
}
