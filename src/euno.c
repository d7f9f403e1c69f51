/*-------------------------------------------------------------------------
 *
 * euno.c
 *	  The library's beginning: settings, hooks, shared memory.
 *
 * Preloaded, it reserves the arena in the postmaster.  Loaded later (pg_dump,
 * CREATE EXTENSION, a server without the setting), it works as a library whose
 * trees are all absent; the first use of an index says what is missing.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "utils/guc.h"

#include "am/euno_ddl.h"
#include "am/euno_debug.h"
#include "am/euno_insert.h"
#include "am/euno_operation.h"
#include "am/euno_planner.h"
#include "am/euno_predicate.h"
#include "am/euno_state.h"
#include "euno_compat.h"
#include "key/euno_key.h"
#include "mem/euno_domains.h"
#include "mem/euno_snapshot.h"
#include "worker/euno_worker.h"

EUNO_MODULE_MAGIC;

void		_PG_init(void);

static shmem_request_hook_type previous_shmem_request = NULL;
static shmem_startup_hook_type previous_shmem_startup = NULL;

static void
define_settings(void)
{
	DefineCustomIntVariable("euno.max_memory",
							"Sets the maximum amount of memory that all euno indexes together may use.",
							"Address space is reserved at server start; memory is taken as trees grow.",
							&euno_max_memory_mb,
							1024, 1, INT_MAX / 2,
							PGC_POSTMASTER, GUC_UNIT_MB,
							NULL, NULL, NULL);
	DefineCustomIntVariable("euno.max_indexes",
							"Sets the maximum number of euno indexes in all databases together.",
							NULL,
							&euno_max_indexes,
							1024, 1, 65535,
							PGC_POSTMASTER, 0,
							NULL, NULL, NULL);
	DefineCustomBoolVariable("euno.snapshot_on_shutdown",
							 "Writes euno indexes to a file at a clean shutdown and reads them at the next start.",
							 NULL,
							 &euno_snapshot_on_shutdown,
							 true,
							 PGC_SIGHUP, 0,
							 NULL, NULL, NULL);
	euno_domains_define_setting();
	euno_full_define_settings();
	euno_worker_define_settings();
}

static void
shmem_request(void)
{
	if (previous_shmem_request)
		previous_shmem_request();
	RequestAddinShmemSpace(euno_registry_shmem_size());
	RequestAddinShmemSpace(euno_domains_shmem_size());
	RequestAddinShmemSpace(euno_worker_shmem_size());
	RequestAddinShmemSpace(euno_key_locks_shmem_size());
	RequestAddinShmemSpace(euno_checking_shmem_size());
	RequestNamedLWLockTranche(EUNO_REGISTRY_TRANCHE, 1);
	RequestNamedLWLockTranche(EUNO_WORKER_TRANCHE, 1);
	RequestNamedLWLockTranche(EUNO_PREDICATE_TRANCHE, EUNO_PREDICATE_STRIPES);
}

static void
shmem_startup(void)
{
	if (previous_shmem_startup)
		previous_shmem_startup();
	euno_registry_shmem_startup();
	euno_domains_shmem_startup();
	euno_worker_shmem_startup();
	euno_key_locks_shmem_startup();
	euno_checking_shmem_startup();
	euno_snapshot_shmem_startup();
}

void
_PG_init(void)
{
	if (process_shared_preload_libraries_in_progress)
	{
		define_settings();
		euno_operation_define();
		euno_domains_configure();
		euno_registry_reserve();
		previous_shmem_request = shmem_request_hook;
		shmem_request_hook = shmem_request;
		previous_shmem_startup = shmem_startup_hook;
		shmem_startup_hook = shmem_startup;
		if (euno_old_snapshot_threshold_active())
			ereport(WARNING,
					(errmsg("euno indexes are not used while \"old_snapshot_threshold\" is set")));
		else
			euno_worker_register();
	}
	euno_environment.abbreviate = euno_row_abbreviate;
	euno_debug_init();

	/*
	 * Loaded later, we have not defined all of our settings; that must not
	 * make every session complain of those in the configuration file.
	 */
	if (euno_preloaded)
		MarkGUCPrefixReserved("euno");

	euno_options_init();
	euno_index_init();

	/*
	 * Registered last, so called first when a transaction ends: trees are
	 * dropped before operations are unwound.  The other order is right, too.
	 */
	euno_gc_init();
	euno_private_init();
	euno_planner_init();
	euno_paths_init();
	euno_consumer_init();
	euno_ddl_init();
}
