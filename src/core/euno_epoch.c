/*-------------------------------------------------------------------------
 *
 * euno_epoch.c
 *	  Epoch-based reclamation across processes (see euno_epoch.h).
 *
 * Why it is safe.  A reader stores its pin, then loads pointers.  Who frees a
 * node has seen that it was unlinked and its epoch e has ended, then has all
 * processes pass a full barrier, and looks at the pins.  Either it sees the
 * reader's pin, or the reader's loads come after the barrier and cannot find the
 * node.  A pin greater than e was taken from an epoch that began after the
 * unlinking, so its reader cannot find the node either.  See src/README.md,
 * "Epochs, and whose barrier".
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

uint64_t
euno_epoch_advance(EunoEpochs *epochs)
{
	/* Release: who sees the new epoch sees the unlinking. */
	return euno_add64_full(&epochs->current, 1);
}

/*
 * The oldest epoch that somebody has pinned; "current" if none is older.  If it
 * is less than "enough", it may be another one than the oldest.
 */
static uint64_t
oldest_pin(EunoEpochs *epochs, uint64_t current, uint64_t enough)
{
	uint64_t	oldest = current;

	for (uint32_t i = 0; i < epochs->nslots && oldest >= enough; i++)
	{
		uint64_t	pinned = euno_load64_acquire(&epochs->slots[i].pinned);

		if (pinned != 0 && pinned < oldest)
			oldest = pinned;
	}
	return oldest;
}

uint64_t
euno_epoch_bound(EunoEpochs *epochs, uint64_t wanted)
{
	uint64_t	passed = euno_load64_acquire(&epochs->passed);
	uint64_t	current = euno_load64_acquire(&epochs->current);
	uint64_t	bound;

	if (wanted <= passed)
		wanted = passed + 1;

	/* Without the barrier a pin may be missed: this is how far it could go. */
	if (oldest_pin(epochs, current, wanted) < wanted ||
		!euno_barrier_all(&epochs->barriers))
		return passed;
	bound = oldest_pin(epochs, current, passed + 1);
	if (bound <= passed)
		return passed;

	/* If another has stored a greater one by now, that is lost. */
	euno_store64_release(&epochs->passed, bound);
	return bound;
}

uint64_t
euno_epoch_bound_lately(EunoEpochs *epochs)
{
	uint64_t	tried = euno_load64(&epochs->tried);
	uint64_t	current = euno_load64(&epochs->current);

	if (current < tried + EUNO_EPOCH_BATCH ||
		!euno_cas64(&epochs->tried, &tried, current))
		return euno_load64_acquire(&epochs->passed);
	return euno_epoch_bound(epochs, 0);
}

bool
euno_epoch_passed(EunoEpochs *epochs, uint64_t retired)
{
	return retired < euno_load64_acquire(&epochs->passed) ||
		retired < euno_epoch_bound(epochs, retired + 1);
}

void
euno_process_reset(EunoProcess *process, uint32_t depth)
{
	if (process->depth > 0 && depth == 0)
		euno_store64_release(&process->epochs->slots[process->slot].pinned, 0);
	process->depth = depth;
}
