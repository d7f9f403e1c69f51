/*-------------------------------------------------------------------------
 *
 * bpt_ops.h
 *	  The operations of the Euno-B+Tree.
 *
 * What each promises is said where EunoTreeOps is declared.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BPT_OPS_H
#define BPT_OPS_H

#include "core/euno_core.h"

extern EunoStatus euno_bpt_create(EunoContext *cx, EunoTree *tree,
								  const EunoTreeConfig *config);
extern EunoStatus euno_bpt_insert(EunoContext *cx, EunoTree *tree,
								  const EunoEntry *entry, bool no_split);
extern EunoStatus euno_bpt_remove(EunoContext *cx, EunoTree *tree,
								  const EunoEntry *entry,
								  const EunoGuard *guard);
extern EunoStatus euno_bpt_contains(EunoContext *cx, EunoTree *tree,
									const EunoEntry *entry);
extern EunoStatus euno_bpt_read(EunoContext *cx, EunoTree *tree,
								EunoCursor *cursor, bool forward,
								EunoBatch *batch);
extern uint32_t euno_bpt_read_keys(EunoContext *cx, EunoTree *tree,
								   const EunoPosition *positions, uint32_t n,
								   EunoBatch *batch, uint32_t *ends);
extern EunoStatus euno_bpt_bulk_begin(EunoContext *cx, EunoTree *tree,
									  EunoBulk *bulk);
extern EunoStatus euno_bpt_bulk_add(EunoContext *cx, EunoBulk *bulk,
									const EunoEntry *entry);
extern EunoStatus euno_bpt_bulk_end(EunoContext *cx, EunoBulk *bulk);
extern EunoStatus euno_bpt_walk(EunoContext *cx, EunoTree *tree,
								EunoWalk *walk);
extern EunoStatus euno_bpt_compact(EunoContext *cx, EunoTree *tree,
								   uint32_t how, uint32_t max_leaves,
								   uint32_t *merged);
extern void euno_bpt_maintain(EunoContext *cx, EunoTree *tree, int domain);
extern EunoStatus euno_bpt_set_domains(EunoContext *cx, EunoTree *tree,
									   uint64_t domains);
extern EunoStatus euno_bpt_set_mode(EunoContext *cx, EunoTree *tree,
									const EunoPosition *pos, bool contended);
extern void euno_bpt_steer(EunoContext *cx, EunoTree *tree,
						   uint32_t conflicts, uint32_t most);
extern EunoStatus euno_bpt_migrate(EunoContext *cx, EunoTree *tree,
								   const EunoPosition *pos, int domain);
extern uint32_t euno_bpt_settle(EunoContext *cx, EunoTree *tree,
								uint32_t max);
extern uint64_t euno_bpt_verify(EunoContext *cx, EunoTree *tree,
								const EunoVerify *verify);
extern uint64_t euno_bpt_entries(EunoTree *tree);
extern void euno_bpt_stats(EunoContext *cx, EunoTree *tree,
						   EunoTreeStats *stats);
extern EunoStatus euno_bpt_moves(EunoContext *cx, EunoTree *tree,
								 uint64_t *position, EunoMove *to,
								 uint32_t *n);
extern uint32_t euno_bpt_heat(EunoContext *cx, EunoTree *tree, bool round,
							  EunoHeat *to, uint32_t max);
extern EunoStatus euno_bpt_leaf(EunoContext *cx, EunoTree *tree,
								const EunoHeat *heat, EunoLeafInfo *info);

#endif							/* BPT_OPS_H */
