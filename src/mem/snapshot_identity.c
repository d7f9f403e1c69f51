/*-------------------------------------------------------------------------
 *
 * snapshot_identity.c
 *	  Which tables the trees of a file are right for.
 *
 * src/README.md, "Over a restart", has the proof.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <dirent.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "port/pg_crc32c.h"
#include "storage/fd.h"

#include "mem/euno_registry.h"
#include "mem/snapshot_private.h"

static uint64 programs;			/* see identify_programs */

static uint64
hash_bytes_64(uint64 hash, const void *data, size_t size)
{
	const unsigned char *p = data;

	/* FNV-1a */
	for (size_t i = 0; i < size; i++)
		hash = (hash ^ p[i]) * UINT64CONST(1099511628211);
	return hash;
}

static uint64
hash_file_state(uint64 hash, const char *path)
{
	struct stat st;

	if (stat(path, &st) != 0)
		return hash;
	hash = hash_bytes_64(hash, &st.st_size, sizeof(st.st_size));
	hash = hash_bytes_64(hash, &st.st_mtim.tv_sec, sizeof(st.st_mtim.tv_sec));
	return hash_bytes_64(hash, &st.st_mtim.tv_nsec, sizeof(st.st_mtim.tv_nsec));
}

/*
 * The server, this library, and those that know collations: path, notes (the
 * linker's build ID is one), size and time of the file.
 */
static int
hash_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	uint64	   *hash = arg;
	bool		is_program = info->dlpi_name[0] == '\0';
	const char *path = is_program ? "/proc/self/exe" : info->dlpi_name;
	const char *base = strrchr(path, '/');

	base = base ? base + 1 : path;
	if (!is_program && strncmp(base, "euno_index", 10) != 0 &&
		strncmp(base, "libc.", 5) != 0 && strncmp(base, "libicu", 6) != 0)
		return 0;

	*hash = hash_bytes_64(*hash, path, strlen(path));
	*hash = hash_file_state(*hash, path);
	for (int i = 0; i < info->dlpi_phnum; i++)
	{
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (segment->p_type == PT_NOTE)
			*hash = hash_bytes_64(*hash,
								  (void *) (info->dlpi_addr + segment->p_vaddr),
								  segment->p_memsz);
	}
	return 0;
}

/*
 * Locales in directories of their own below "parent", as some systems have
 * them, in whatever order the directories are found.
 */
static uint64
identify_locales(const char *parent)
{
	DIR		   *dir = opendir(parent);
	struct dirent *entry;
	char		path[MAXPGPATH];
	uint64		sum = 0;

	if (dir == NULL)
		return 0;
	while ((entry = readdir(dir)) != NULL)
	{
		snprintf(path, sizeof(path), "%s/%s/LC_COLLATE", parent, entry->d_name);
		sum += hash_file_state(hash_bytes_64(0, path, strlen(path)), path);
	}
	closedir(dir);
	return sum;
}

/* The same of those that LOCPATH names, which the C library prefers. */
static uint64
identify_own_locales(void)
{
	const char *value = getenv("LOCPATH");
	char	   *path = pstrdup(value != NULL ? value : "");
	char	   *next = path;
	char	   *parent;
	uint64		sum = 0;

	while ((parent = strsep(&next, ":")) != NULL)
		sum += identify_locales(parent);
	pfree(path);
	return sum;
}

/*
 * Programs and data that decide the layout of nodes and the order of keys.
 * Another one of them may be in use after a restart.
 */
static uint64
identify_programs(void)
{
	uint64		hash = UINT64CONST(14695981039346656037);

	(void) dl_iterate_phdr(hash_object, &hash);
	hash ^= identify_locales("/usr/lib/locale") + identify_own_locales();
	return hash_file_state(hash, "/usr/lib/locale/locale-archive");
}

void
euno_snapshot_note_programs(void)
{
	if (programs == 0)
		programs = identify_programs();
}

/*
 * pg_control, and when it was written.  False if it does not say that the
 * server was shut down cleanly, as a primary.
 */
static bool
read_control_file(SnapshotIdentity *identity)
{
	ControlFileData *control = &identity->control;
	int			fd = BasicOpenFile(XLOG_CONTROL_FILE, O_RDONLY | PG_BINARY);
	struct stat st;
	pg_crc32c	crc;
	bool		complete;

	if (fd < 0)
		return false;
	complete = read(fd, control, sizeof(*control)) == sizeof(*control) &&
		fstat(fd, &st) == 0;
	close(fd);
	if (!complete)
		return false;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, control, offsetof(ControlFileData, crc));
	FIN_CRC32C(crc);
	identity->changed_sec = st.st_mtim.tv_sec;
	identity->changed_nsec = st.st_mtim.tv_nsec;
	return EQ_CRC32C(crc, control->crc) && control->state == DB_SHUTDOWNED;
}

bool
euno_snapshot_identify(SnapshotIdentity *identity)
{
	memset(identity, 0, sizeof(*identity));
	if (!read_control_file(identity))
		return false;
	identity->programs = programs;
	identity->place = euno_arena_place(euno_registry_arena());
	identity->epoch = euno_shared_epochs()->current;
	return true;
}

void
euno_snapshot_mark_shutdown(SnapshotIdentity *identity)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}};
	uint32		random;

	if (!pg_strong_random(&random, sizeof(random)))
		return;
	times[1].tv_sec = identity->changed_sec;
	times[1].tv_nsec = random % 1000000000;
	if (utimensat(AT_FDCWD, XLOG_CONTROL_FILE, times, 0) == 0)
		(void) read_control_file(identity);
}

/*
 * Is WAL going to be replayed although pg_control says that the server was
 * shut down?  The same files decide it for the startup process.
 */
static bool
recovery_was_asked_for(void)
{
	struct stat st;

	return stat(RECOVERY_SIGNAL_FILE, &st) == 0 ||
		stat(STANDBY_SIGNAL_FILE, &st) == 0 ||
		stat(BACKUP_LABEL_FILE, &st) == 0;
}

bool
euno_snapshot_same_control(const SnapshotIdentity *a, const SnapshotIdentity *b)
{
	return memcmp(&a->control, &b->control, sizeof(a->control)) == 0 &&
		a->changed_sec == b->changed_sec &&
		a->changed_nsec == b->changed_nsec;
}

const char *
euno_snapshot_why_not(const SnapshotIdentity *theirs)
{
	SnapshotIdentity ours;

	if (!euno_snapshot_identify(&ours))
		return "The server was not shut down cleanly as a primary.";
	if (recovery_was_asked_for())
		return "The server is going to replay WAL.";
	if (!euno_snapshot_same_control(theirs, &ours))
		return "It belongs to another shutdown, or to another server.";
	if (theirs->programs != ours.programs)
		return "The server, the library or the collations have changed.";
	if (theirs->place.base != ours.place.base ||
		theirs->place.domains != ours.place.domains ||
		(ours.place.domains > 1 && theirs->place.extents != ours.place.extents))
		return "The memory of euno indexes has another address or shape.";
	return NULL;
}
