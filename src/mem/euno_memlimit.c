/*-------------------------------------------------------------------------
 *
 * euno_memlimit.c
 *	  What the control groups that we run in have left of their memory.
 *
 * Groups nest, and each level may have a limit.  Within a container the path
 * that /proc tells may not exist, but the top of the mounted tree is then the
 * container's own group.
 *
 *-------------------------------------------------------------------------
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "mem/euno_memlimit.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_GROUPS		8
#define MAX_PATH		512

/* What is not ours to take: the group's sixty-fourth, 8 MB at least. */
#define SPARE_PART		64
#define SPARE_MIN		(UINT64_C(8) << 20)

/* The names of the same things in the two versions of control groups. */
typedef struct GroupFiles
{
	const char *mount;
	const char *limit;
	const char *usage;
	const char *cache;			/* a line of memory.stat */
} GroupFiles;

static const GroupFiles version_1 = {"/sys/fs/cgroup/memory",
	"memory.limit_in_bytes", "memory.usage_in_bytes",
"total_inactive_file "};
static const GroupFiles version_2 = {"/sys/fs/cgroup", "memory.max",
"memory.current", "inactive_file "};

typedef struct Group
{
	const GroupFiles *files;
	char		path[MAX_PATH];
} Group;

static Group groups[MAX_GROUPS];
static int	ngroups = 0;

/* The beginning of a small file, as a string; false if it cannot be read. */
static bool
read_file(const char *folder, const char *name, char *to, size_t size)
{
	char		path[MAX_PATH + 64];
	int			fd;
	ssize_t		n;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, to, size - 1);
	close(fd);
	if (n < 0)
		return false;
	to[n] = '\0';
	return true;
}

/* UINT64_MAX for "max" and for what cannot be read. */
static uint64_t
read_number(const char *folder, const char *name)
{
	char		text[64];

	if (!read_file(folder, name, text, sizeof(text)) ||
		text[0] < '0' || text[0] > '9')
		return UINT64_MAX;
	return strtoull(text, NULL, 10);
}

/* Page cache that the kernel gives up when memory is wanted. */
static uint64_t
read_cache(const Group *group)
{
	char		text[4096];
	const char *line;

	if (!read_file(group->path, "memory.stat", text, sizeof(text)))
		return 0;
	for (line = text; line != NULL; line = strchr(line, '\n'))
	{
		if (*line == '\n')
			line++;
		if (strncmp(line, group->files->cache, strlen(group->files->cache)) == 0)
			return strtoull(line + strlen(group->files->cache), NULL, 10);
	}
	return 0;
}

/* Notes the groups from this path up to the top that have a limit file. */
static void
add_groups(const GroupFiles *files, const char *path)
{
	char		folder[MAX_PATH];
	size_t		top = strlen(files->mount);
	char	   *slash;

	if (top + strlen(path) >= MAX_PATH)
		path = "";
	snprintf(folder, sizeof(folder), "%s%s", files->mount, path);
	for (;;)
	{
		char		text[64];

		if (ngroups < MAX_GROUPS &&
			read_file(folder, files->limit, text, sizeof(text)))
		{
			groups[ngroups].files = files;
			strcpy(groups[ngroups++].path, folder);
		}
		slash = strrchr(folder, '/');
		if (slash == NULL || (size_t) (slash - folder) < top)
			break;
		*slash = '\0';
	}
}

uint64_t
euno_memlimit_init(void)
{
	char		text[4096];
	char	   *line;
	char	   *next;
	uint64_t	least = UINT64_MAX;

	ngroups = 0;
	if (!read_file("/proc/self", "cgroup", text, sizeof(text)))
		return UINT64_MAX;

	/* number:controllers:path; no number and no controllers in version 2 */
	for (line = text; line != NULL && *line != '\0'; line = next)
	{
		char	   *controllers = strchr(line, ':');
		char	   *path = controllers ? strchr(controllers + 1, ':') : NULL;

		next = strchr(line, '\n');
		if (next != NULL)
			*next++ = '\0';
		if (path == NULL)
			continue;
		*path++ = '\0';
		if (strcmp(controllers, ":") == 0)
			add_groups(&version_2, path);
		else if (strcmp(controllers, ":memory") == 0)
			add_groups(&version_1, path);
	}

	for (int i = 0; i < ngroups; i++)
	{
		uint64_t	limit = read_number(groups[i].path, groups[i].files->limit);

		if (limit < least)
			least = limit;
	}

	/* The first version's way to say that there is none. */
	return least > UINT64_MAX / 4 ? UINT64_MAX : least;
}

bool
euno_memlimit_allows(uint64_t bytes)
{
	for (int i = 0; i < ngroups; i++)
	{
		const Group *group = &groups[i];
		uint64_t	limit = read_number(group->path, group->files->limit);
		uint64_t	usage;
		uint64_t	cache;
		uint64_t	wanted;

		if (limit > UINT64_MAX / 4)
			continue;
		usage = read_number(group->path, group->files->usage);
		if (usage == UINT64_MAX)
			continue;
		wanted = bytes + (limit / SPARE_PART > SPARE_MIN ? limit / SPARE_PART : SPARE_MIN);
		if (usage + wanted <= limit)
			continue;
		cache = read_cache(group);
		if (usage - (cache < usage ? cache : usage) + wanted > limit)
			return false;
	}
	return true;
}
