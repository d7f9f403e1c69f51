/*-------------------------------------------------------------------------
 *
 * euno_debug.c
 *	  Stop points: places in a protocol where a test can hold a session.
 *
 * SET euno.debug_stop = 'point:key' makes the session wait at that point for
 * the advisory lock "key" (as pg_advisory_lock_shared(key) would) and go on as
 * soon as it is granted.  isolationtester and pg_locks see the wait.  Several
 * points are separated by commas.
 *
 * 'point:error' raises an error there instead; 'point:sleep' sleeps for ten
 * seconds, where neither is possible.
 *
 * The value 'count-nodes' has every descent counted in the statistics of
 * domains and every conflict noted where it was, not only a sample.
 *
 * euno.debug_copies = all gives every index with replicate = auto copies of
 * its inner nodes in all domains, from the build on.  "lagging" also keeps the
 * session from posting separators of leaves that others made, so that
 * directories lag as far as they can.
 *
 * A B+tree that is made while euno.debug_modes is not "off" has its leaves
 * forced into modes from then on, by each session as its setting says
 * (bpt_forced.c).
 *
 * euno.debug_wrong_guesses: text in a collation is sorted by guesses some or
 * all of which are wrong (key_sort.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/lock.h"
#include "utils/guc.h"

#include "am/euno_debug.h"
#include "core/euno_core.h"
#include "key/euno_key.h"

char	   *euno_debug_stop = NULL;
int			euno_debug_copies = EUNO_COPIES_BY_USE;
bool		euno_debug_count_all = false;

static const struct config_enum_entry forced_modes[] = {
	{"off", EUNO_FORCED_NOT, false},
	{"calm", EUNO_FORCED_CALM, false},
	{"contended", EUNO_FORCED_CONTENDED, false},
	{"flapping", EUNO_FORCED_FLAPPING, false},
	{"stalling", EUNO_FORCED_STALLING, false},
	{NULL, 0, false}
};

static const struct config_enum_entry copies[] = {
	{"off", EUNO_COPIES_BY_USE, false},
	{"all", EUNO_COPIES_ALL, false},
	{"lagging", EUNO_COPIES_LAGGING, false},
	{NULL, 0, false}
};

static void
assign_stop(const char *newval, void *extra)
{
	euno_debug_count_all = strcmp(newval, "count-nodes") == 0;
}

void
euno_debug_init(void)
{
	DefineCustomStringVariable("euno.debug_stop",
							   "Waits for an advisory lock at a named point, for tests.",
							   "A point's name, a colon, and the lock's key; more of them after commas.",
							   &euno_debug_stop,
							   "",
							   PGC_SUSET,
							   GUC_NOT_IN_SAMPLE | GUC_NO_SHOW_ALL,
							   NULL, assign_stop, NULL);
	DefineCustomEnumVariable("euno.debug_modes",
							 "Forces leaves of euno indexes into modes, for tests.",
							 NULL,
							 &euno_forced,
							 EUNO_FORCED_NOT, forced_modes,
							 PGC_SUSET,
							 GUC_NOT_IN_SAMPLE | GUC_NO_SHOW_ALL,
							 NULL, NULL, NULL);
	DefineCustomEnumVariable("euno.debug_copies",
							 "Gives euno indexes copies of their inner nodes in all domains, for tests.",
							 NULL,
							 &euno_debug_copies,
							 EUNO_COPIES_BY_USE, copies,
							 PGC_SUSET,
							 GUC_NOT_IN_SAMPLE | GUC_NO_SHOW_ALL,
							 NULL, NULL, NULL);
	DefineCustomBoolVariable("euno.debug_wrong_guesses",
							 "Lets builds of euno indexes guess wrongly how text is ordered, for tests.",
							 NULL,
							 &euno_wrong_guesses,
							 false,
							 PGC_SUSET,
							 GUC_NOT_IN_SAMPLE | GUC_NO_SHOW_ALL,
							 NULL, NULL, NULL);
}

void
euno_debug_wait(const char *point)
{
	size_t		length = strlen(point);
	const char *item = euno_debug_stop;
	LOCKTAG		tag;

	while (strncmp(item, point, length) != 0 || item[length] != ':')
	{
		item = strchr(item, ',');
		if (item == NULL)
			return;
		item++;
	}

	item += length + 1;
	if (strncmp(item, "error", 5) == 0)
		elog(ERROR, "stop point \"%s\" was reached", point);
	if (strncmp(item, "sleep", 5) == 0)
	{
		for (int i = 0; i < 1000; i++)
			pg_usleep(10000);
		return;
	}
	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, 0, (uint32) atoi(item), 1);
	(void) LockAcquire(&tag, ShareLock, false, false);
	LockRelease(&tag, ShareLock, false);
}
