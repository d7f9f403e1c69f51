/*-------------------------------------------------------------------------
 *
 * euno_snapshot.c
 *	  Trees that survive a clean restart, in a file.
 *
 * The postmaster writes the file as the last thing it does, when all other
 * processes have ended and the shutdown checkpoint is on disk.  It reads it as
 * the first thing it does with its shared memory, before it has started any
 * process.  In between nobody can have changed a table without changing
 * pg_control, of which the file has a copy.  src/README.md, "Over a restart",
 * has the proof.
 *
 * The file holds the extents of each tree as they are in memory.  Pointers
 * between nodes stay right because the arena is mapped at the same address
 * again, and layouts because the library is the same.
 *
 * A file is a sequence of records: BEGIN, then for each tree TREE and its RUNs
 * of extents, then END.  Each has a checksum, a number, and the random number
 * of its file.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/uio.h>
#include <unistd.h>

#include "access/xlogrecovery.h"
#include "common/file_perm.h"
#include "libpq/pqsignal.h"
#include "miscadmin.h"
#include "port/pg_crc32c.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "utils/timestamp.h"

#include "euno_compat.h"
#include "mem/euno_registry.h"
#include "mem/euno_snapshot.h"
#include "mem/snapshot_private.h"

#define SNAPSHOT_MAGIC	0x534F4E5545	/* "EUNOS" */

/*
 * Most extents in a record: 2 MB stay in the cache between checksum and write,
 * and are a huge page.
 */
#define RUN_EXTENTS		32

typedef enum RecordKind
{
	RECORD_BEGIN = 1,			/* SnapshotIdentity */
	RECORD_TREE,				/* TreeImage */
	RECORD_RUN,
	RECORD_END
} RecordKind;

/* No padding: it is checksummed. */
typedef struct Record
{
	uint64		magic;
	uint64		file;			/* random, the same in all records of a file */
	uint64		number;			/* 0, 1, ... */
	uint64		size;			/* bytes that follow */
	uint32		kind;
	uint32		domain;			/* RUN: the pool it belongs to */
	uint32		first;			/* RUN: number of the first extent */
	pg_crc32c	crc;			/* of all this, with 0 here, and what follows */
} Record;

typedef struct TreeImage
{
	EunoTreeKey key;
	Oid			index_oid;
	Oid			heap_oid;
	uint32		must_stay;
	uint32		replicate;
	FullTransactionId creator;
	TransactionId prepared;
	Oid			unprepared_oid;
	uint64		modifiers;
	int64		ops;			/* bytes from euno_bptree_ops */
	EunoTree	tree;
	EunoPool	pools[EUNO_MAX_DOMAINS];
} TreeImage;

typedef struct SnapshotFile
{
	int			fd;
	uint64		file;
	uint64		number;			/* of the next record */
	uint64		bytes;			/* read or written */
} SnapshotFile;

bool		euno_snapshot_on_shutdown = true;

static bool trees_were_loaded = false;	/* inherited by fork */
static volatile sig_atomic_t stop_writing = false;

/* The file is still there from which they were loaded, for the next start. */
static bool kept = false;
static SnapshotIdentity kept_identity;

/* ---- Records ---- */

static pg_crc32c
record_crc(const Record *record, const void *data)
{
	Record		header = *record;
	pg_crc32c	crc;

	header.crc = 0;
	INIT_CRC32C(crc);
	COMP_CRC32C(crc, &header, sizeof(header));
	COMP_CRC32C(crc, data, record->size);
	FIN_CRC32C(crc);
	return crc;
}

/* False and errno on failure. */
static bool
write_record(SnapshotFile *file, RecordKind kind, uint32 domain, uint32 first,
			 const void *data, uint64 size)
{
	Record		record = {.magic = SNAPSHOT_MAGIC,.file = file->file,
		.number = file->number++,.size = size,.kind = kind,.domain = domain,
	.first = first};
	struct iovec iov[2] = {{&record, sizeof(record)}, {unconstify(void *, data), size}};
	int			part = 0;

	record.crc = record_crc(&record, data);
	while (part < 2)
	{
		ssize_t		written = writev(file->fd, iov + part, 2 - part);

		if (stop_writing)
		{
			errno = ECANCELED;
			return false;
		}
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return false;
		file->bytes += written;
		while (part < 2 && (size_t) written >= iov[part].iov_len)
			written -= iov[part++].iov_len;
		if (part < 2)
		{
			iov[part].iov_base = (char *) iov[part].iov_base + written;
			iov[part].iov_len -= written;
		}
	}
	return true;
}

static bool
read_fully(SnapshotFile *file, void *to, size_t size)
{
	while (size > 0)
	{
		ssize_t		n = read(file->fd, to, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		to = (char *) to + n;
		size -= n;
		file->bytes += n;
	}
	return true;
}

/* A record's header, which proves nothing before its data has been read. */
static bool
read_header(SnapshotFile *file, Record *record)
{
	if (!read_fully(file, record, sizeof(*record)) ||
		record->magic != SNAPSHOT_MAGIC || record->number != file->number ||
		(file->number > 0 && record->file != file->file))
		return false;
	file->file = record->file;
	file->number++;
	return true;
}

/* What follows the header, which must be of this size. */
static bool
read_data(SnapshotFile *file, const Record *record, void *to, size_t size)
{
	return record->size == size && read_fully(file, to, size) &&
		EQ_CRC32C(record_crc(record, to), record->crc);
}

/* ---- Writing ---- */

static bool
write_tree(SnapshotFile *file, EunoTreeSlot *slot)
{
	EunoArena  *arena = euno_registry_arena();
	TreeImage	image;

	memset(&image, 0, sizeof(image));
	image.key = slot->key;
	image.index_oid = slot->index_oid;
	image.heap_oid = slot->heap_oid;
	image.modifiers = slot->modifiers;
	image.must_stay = slot->must_stay;
	image.replicate = pg_atomic_read_u32(&slot->replicate);
	image.creator = slot->creator;
	image.prepared = slot->prepared;
	image.unprepared_oid = slot->unprepared_oid;
	image.ops = (const char *) slot->ops - (const char *) &euno_bptree_ops;
	image.tree = slot->tree;
	for (int domain = 0; domain < EUNO_MAX_DOMAINS; domain++)
		euno_pool_settle(&slot->pools[domain]);
	memcpy(image.pools, slot->pools, sizeof(image.pools));
	if (!write_record(file, RECORD_TREE, 0, 0, &image, sizeof(image)))
		return false;

	for (int domain = 0; domain < EUNO_MAX_DOMAINS; domain++)
	{
		EunoPool   *pool = &slot->pools[domain];
		uint32_t	link = pool->first_extent;

		while (link != 0)
		{
			uint32_t	first;
			uint32_t	count;

			link = euno_pool_run(pool, link, &first, &count);

			/* The newest first: their list is made anew in this order. */
			while (count > 0)
			{
				uint32_t	n = Min(count, (first + count - 1) % RUN_EXTENTS + 1);

				count -= n;
				if (!write_record(file, RECORD_RUN, domain, first + count,
								  euno_arena_extent(arena, first + count),
								  n * EUNO_EXTENT_SIZE))
					return false;
			}
		}
	}
	return true;
}

/* All trees that answer queries, except temporary ones. */
static bool
write_trees(SnapshotFile *file, int *ntrees)
{
	for (int i = 0; i < euno_tree_count(); i++)
	{
		EunoTreeSlot *slot = euno_tree_by_number(i);

		if (euno_tree_state(slot) != EUNO_STATE_READY ||
			slot->key.temp_owner >= 0)
			continue;
		if (!write_tree(file, slot))
			return false;
		(*ntrees)++;
	}
	return true;
}

static void
handle_immediate_stop(SIGNAL_ARGS)
{
	stop_writing = true;
}

/* While we write, an immediate shutdown is immediate all the same. */
static void
obey_immediate_stop(void)
{
	sigset_t	set;

	pqsignal(SIGQUIT, handle_immediate_stop);
	sigemptyset(&set);
	sigaddset(&set, SIGQUIT);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void
write_snapshot(const SnapshotIdentity *identity)
{
	SnapshotFile file = {.number = 0,.bytes = 0};
	TimestampTz start = GetCurrentTimestamp();
	int			ntrees = 0;
	bool		done;

	file.fd = BasicOpenFilePerm(EUNO_SNAPSHOT_TEMP_FILE,
								O_WRONLY | O_CREAT | O_TRUNC | PG_BINARY,
								pg_file_create_mode);
	obey_immediate_stop();
	done = file.fd >= 0 &&
		pg_strong_random(&file.file, sizeof(file.file)) &&
		write_record(&file, RECORD_BEGIN, 0, 0, identity, sizeof(*identity)) &&
		write_trees(&file, &ntrees) &&
		write_record(&file, RECORD_END, 0, 0, NULL, 0);

	/*
	 * Not flushed: a file that a power failure has torn costs a rebuild and no
	 * more.
	 */
	if (file.fd >= 0)
		done = close(file.fd) == 0 && done;
	if (done && ntrees > 0)
		done = rename(EUNO_SNAPSHOT_TEMP_FILE, EUNO_SNAPSHOT_FILE) == 0;
	if (done && ntrees > 0)
		ereport(LOG,
				(errmsg("wrote %d euno indexes to \"%s\" (%llu kB in %ld ms)",
						ntrees, EUNO_SNAPSHOT_FILE,
						(unsigned long long) file.bytes / 1024,
						TimestampDifferenceMilliseconds(start, GetCurrentTimestamp()))));
	else
	{
		if (!done)
			ereport(LOG,
					(errcode_for_file_access(),
					 errmsg("could not write euno indexes to \"%s\": %m",
							EUNO_SNAPSHOT_FILE),
					 errdetail("They will be rebuilt from their tables.")));
		(void) unlink(EUNO_SNAPSHOT_TEMP_FILE);
	}
}

/* Removes a file, if it is there. */
static void
discard(const char *path)
{
	if (unlink(path) != 0 && errno != ENOENT)
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not remove file \"%s\": %m", path)));
}

/*
 * on_shmem_exit, in the postmaster.  Code 0 alone does not say that the shutdown
 * was clean; pg_control does: the shutdown checkpoint comes after the last
 * process that could write to a table.
 */
static void
postmaster_exit(int code, Datum arg)
{
	SnapshotIdentity identity;
	bool		clean;

	if (IsUnderPostmaster || code != 0)
		return;
	clean = euno_snapshot_identify(&identity);
	if (clean && kept && euno_snapshot_same_control(&identity, &kept_identity))
		return;					/* told to stop before it has begun */
	discard(EUNO_SNAPSHOT_FILE);
	if (!clean || !euno_snapshot_on_shutdown)
		return;
	euno_snapshot_mark_shutdown(&identity);
	write_snapshot(&identity);
}

/* ---- Reading ---- */

/* The tree is not READY before the whole file has been read. */
static EunoTreeSlot *
adopt_tree(const TreeImage *image)
{
	EunoTreeSlot *slot = euno_tree_find_or_make(&image->key, image->index_oid);

	if (slot == NULL)
		return NULL;
	slot->heap_oid = image->heap_oid;
	slot->modifiers = image->modifiers;
	slot->must_stay = image->must_stay != 0;
	pg_atomic_write_u32(&slot->replicate, image->replicate);
	slot->creator = image->creator;
	slot->prepared = image->prepared;
	slot->unprepared_oid = image->unprepared_oid;
	slot->ops = (const EunoTreeOps *) ((const char *) &euno_bptree_ops + image->ops);
	slot->tree = image->tree;
	slot->tree.alloc_arg = slot->pools;
	for (int domain = 0; domain < EUNO_MAX_DOMAINS; domain++)
		euno_pool_from_image(&slot->pools[domain], euno_registry_arena(),
							 &image->pools[domain]);
	return slot;
}

/* Has the tree got all extents that it had? */
static bool
tree_is_complete(const EunoTreeSlot *slot, const TreeImage *image)
{
	for (int domain = 0; domain < EUNO_MAX_DOMAINS; domain++)
		if (slot->pools[domain].extents != image->pools[domain].extents)
			return false;
	return true;
}

/* NULL, or why the trees in the file cannot be used. */
static const char *
read_trees(SnapshotFile *file)
{
	static const char damaged[] = "It is damaged.";
	EunoArena  *arena = euno_registry_arena();
	TreeImage	image;
	EunoTreeSlot *slot = NULL;
	uint32_t	tail[EUNO_MAX_DOMAINS];
	Record		record;

	while (read_header(file, &record))
	{
		switch ((RecordKind) record.kind)
		{
			case RECORD_TREE:
				if ((slot != NULL && !tree_is_complete(slot, &image)) ||
					!read_data(file, &record, &image, sizeof(image)))
					return damaged;
				slot = adopt_tree(&image);
				if (slot == NULL)
					return "It has more indexes than \"euno.max_indexes\" allows.";
				memset(tail, 0, sizeof(tail));
				break;
			case RECORD_RUN:
				if (slot == NULL || record.domain >= EUNO_MAX_DOMAINS ||
					record.size > RUN_EXTENTS * EUNO_EXTENT_SIZE ||
					record.size % EUNO_EXTENT_SIZE != 0)
					return damaged;
				if (!euno_pool_claim(&slot->pools[record.domain],
									 &tail[record.domain], record.first,
									 record.size / EUNO_EXTENT_SIZE))
					return "It holds more than \"euno.max_memory\" or the machine's memory allows.";
				if (!read_data(file, &record,
							   euno_arena_extent(arena, record.first),
							   record.size))
					return damaged;
				break;
			case RECORD_END:
				return (slot == NULL || tree_is_complete(slot, &image)) &&
					read_data(file, &record, NULL, 0) ? NULL : damaged;
			default:
				return damaged;
		}
	}
	return damaged;
}

/* What was read becomes usable, or nothing of it. */
static int
finish_trees(bool good)
{
	int			ntrees = euno_tree_count();

	for (int i = 0; i < ntrees; i++)
	{
		EunoTreeSlot *slot = euno_tree_by_number(i);

		if (good)
		{
			for (int domain = 0; domain < EUNO_MAX_DOMAINS; domain++)
				euno_pool_mark(&slot->pools[domain]);
			slot->from_snapshot = true;
			pg_write_barrier();
			pg_atomic_write_u32(&slot->state, EUNO_STATE_READY);
		}
		else
			euno_tree_drop(&slot->key);
	}
	if (!good)
		euno_arena_reset(euno_registry_arena());
	return ntrees;
}

/* False, and the log says why, if the trees do not match, or cannot be had. */
static bool
read_snapshot(SnapshotFile *file)
{
	TimestampTz start = GetCurrentTimestamp();
	const char *reason = "It is damaged.";
	SnapshotIdentity identity;
	Record		record;

	if (read_header(file, &record) && record.kind == RECORD_BEGIN &&
		read_data(file, &record, &identity, sizeof(identity)) &&
		(reason = euno_snapshot_why_not(&identity)) == NULL)
	{
		int			ntrees;

		reason = read_trees(file);
		ntrees = finish_trees(reason == NULL);
		if (reason == NULL)
		{
			/* What was retired before has been retired long ago. */
			euno_shared_epochs()->current = identity.epoch + 1;
			trees_were_loaded = true;
			kept_identity = identity;
			ereport(LOG,
					(errmsg("read %d euno indexes from \"%s\" (%llu kB in %ld ms)",
							ntrees, EUNO_SNAPSHOT_FILE,
							(unsigned long long) file->bytes / 1024,
							TimestampDifferenceMilliseconds(start, GetCurrentTimestamp()))));
			return true;
		}
	}
	ereport(LOG,
			(errmsg("ignored \"%s\"", EUNO_SNAPSHOT_FILE),
			 errdetail("%s", reason),
			 errhint("Euno indexes will be rebuilt from their tables.")));
	return false;
}

/*
 * While it is read it has another name: a start that does not live to the end
 * of that must not have the next ones end there, too.
 */
static void
read_if_there(void)
{
	SnapshotFile file = {.fd = -1};

	if (rename(EUNO_SNAPSHOT_FILE, EUNO_SNAPSHOT_READ_FILE) == 0)
		file.fd = BasicOpenFile(EUNO_SNAPSHOT_READ_FILE, O_RDONLY | PG_BINARY);
	if (file.fd >= 0)
	{
		bool		good = read_snapshot(&file);

		close(file.fd);
		kept = good &&
			rename(EUNO_SNAPSHOT_READ_FILE, EUNO_SNAPSHOT_FILE) == 0;
		if (kept)
			return;
	}
	else if (errno != ENOENT)
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not open file \"%s\": %m", EUNO_SNAPSHOT_FILE),
				 errhint("Euno indexes will be rebuilt from their tables.")));
	discard(EUNO_SNAPSHOT_READ_FILE);
}

void
euno_snapshot_shmem_startup(void)
{
	trees_were_loaded = kept = false;
	if (!IsPostmasterEnvironment || IsUnderPostmaster || IsBinaryUpgrade)
		return;
	euno_snapshot_note_programs();
	(void) unlink(EUNO_SNAPSHOT_TEMP_FILE);
	if (unlink(EUNO_SNAPSHOT_READ_FILE) == 0)
		ereport(LOG,
				(errmsg("ignored \"%s\"", EUNO_SNAPSHOT_FILE),
				 errdetail("An earlier start ended before it had read it."),
				 errhint("Euno indexes will be rebuilt from their tables.")));
	read_if_there();
	on_shmem_exit(postmaster_exit, 0);
}

void
euno_snapshot_discard(void)
{
	discard(EUNO_SNAPSHOT_FILE);
}

void
euno_snapshot_recheck(void)
{
	if (!trees_were_loaded || GetXLogReplayRecPtr(NULL) == InvalidXLogRecPtr)
		return;
	for (int i = 0; i < euno_tree_count(); i++)
	{
		EunoTreeSlot *slot = euno_tree_by_number(i);

		if (slot->from_snapshot)
			(void) euno_tree_retire(slot, pg_atomic_read_u64(&slot->generation));
	}
}

/* ---- The arena's address ---- */

/*
 * Far from where the kernel puts things by itself, so that the same place is
 * free again after a restart; else at random.
 */
void *
euno_snapshot_address(void)
{
	SnapshotFile file = {.number = 0,.bytes = 0};
	SnapshotIdentity identity;
	Record		record;
	uint32		random = 0;
	uint64		address;

	file.fd = BasicOpenFile(EUNO_SNAPSHOT_FILE, O_RDONLY | PG_BINARY);
	if (file.fd >= 0)
	{
		bool		good = read_header(&file, &record) &&
			record.kind == RECORD_BEGIN &&
			read_data(&file, &record, &identity, sizeof(identity));

		close(file.fd);
		if (good)
			return (void *) (uintptr_t) identity.place.base;
	}

	/* 16 TB, and up to 16 TB more in steps of 2 MB. */
	(void) pg_strong_random(&random, sizeof(random));
	address = UINT64CONST(1) << 44;
	address += (uint64) (random & 0x7FFFFF) << 21;
	return sizeof(void *) == 8 ? (void *) (uintptr_t) address : NULL;
}
