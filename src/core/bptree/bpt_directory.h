/*-------------------------------------------------------------------------
 *
 * bpt_directory.h
 *	  What the writers of a directory share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BPT_DIRECTORY_H
#define BPT_DIRECTORY_H

#include "core/bptree/bpt.h"

/* More separators than a node of the largest size can have. */
#define BPT_MAX_SEPS	1824

typedef struct BptSep
{
	uint64_t	head;			/* not whole: after the prefix; OPAQUE: TID */
	const uint8_t *bytes;		/* whole, OPAQUE: all of it; else what follows
								 * head */
	uint32_t	len;
	bool		whole;
} BptSep;

/* Separators and children of a node, in private memory. */
typedef struct BptSeps
{
	const EunoEnvironment *env;
	EunoTree   *tree;
	bool		opaque;
	uint32_t	n;
	uint32_t	prefix_len;
	uint8_t		prefix[BPT_MAX_COMPOSITE + 8];
	BptSep		seps[BPT_MAX_SEPS];
	void	   *children[BPT_MAX_SEPS + 1];
	BptImage	copy;
} BptSeps;

/* What it takes to change a node. */
typedef struct BptInnerRoom
{
	BptSeps		set;
	BptImage	image;
} BptInnerRoom;

/* Bytes of a separator in a node's heap before its own. */
static inline uint32_t
bpt_separator_header(const EunoTree *tree)
{
	return bpt_is_opaque(tree) ? BPT_SEPARATOR : 2;
}

/* Writes what comes before a separator's bytes, of which there are len. */
static inline void
bpt_put_record(uint8_t *to, bool opaque, EunoTid tid, uint32_t len)
{
	if (opaque)
		euno_put_word(to, tid << 16 | len);
	else
	{
		to[0] = (uint8_t) len;
		to[1] = (uint8_t) (len >> 8);
	}
}

/* bpt_abbreviate.c */
extern bool euno_bpt_abbreviate(const EunoEnvironment *env,
								const EunoTree *tree, const uint8_t *bytes,
								uint32_t len, uint8_t *to, uint32_t *n);
extern bool euno_bpt_abbreviate_sep(const BptSeps *set, uint32_t i,
									uint8_t *to, uint32_t *n);
extern int	euno_bpt_common_abbreviation(const BptSeps *set, uint32_t a,
										 uint32_t b, uint8_t *to);
extern bool euno_bpt_heads_match(const BptSeps *set);

/* bpt_inner_encode.c */
extern void euno_bpt_seps_init(BptSeps *set, EunoContext *cx, EunoTree *tree);
extern bool euno_bpt_seps_load(BptSeps *set, EunoContext *cx, EunoTree *tree,
							   const BptInner *node);
extern bool euno_bpt_seps_insert(BptSeps *set, uint32_t i,
								 const BptFence *fence, void *child);
extern void euno_bpt_seps_remove(BptSeps *set, uint32_t i);
extern uint32_t euno_bpt_seps_get(const BptSeps *set, uint32_t i, uint8_t *to);
extern bool euno_bpt_seps_encode(const BptSeps *set, uint32_t a, uint32_t b,
								 size_t size, BptImage *image);

/* bpt_inner_put.c */
extern void euno_bpt_inner_install(EunoContext *cx, BptInner *node,
								   const BptImage *image, bool is_new);
extern bool euno_bpt_inner_put(EunoContext *cx, EunoTree *tree,
							   BptInner *node, uint32_t i,
							   const BptFence *fence, void *child);

/* bpt_dirbuild.c */
extern void euno_bpt_directory_drop(EunoContext *cx, EunoTree *tree,
									int domain);

/* bpt_merge.c */
extern bool euno_bpt_merging_enter(BptBody *body);
extern void euno_bpt_merging_leave(EunoContext *cx, BptBody *body);
extern bool euno_bpt_directories_lock(EunoContext *cx, EunoTree *tree);
extern void euno_bpt_directories_unlock(EunoContext *cx, EunoTree *tree);
extern bool euno_bpt_copy_at(EunoContext *cx, BptLeaf *leaf, BptPlace *place,
							 BptImage *image);

/* bpt_log.c */
extern BptLeaf *euno_bpt_log_take(EunoContext *cx, BptLog *log);
extern bool euno_bpt_log_try(EunoContext *cx, BptLog *log, BptLeaf *leaf);
extern bool euno_bpt_logs_make(EunoContext *cx, EunoTree *tree,
							   uint64_t domains);
extern void euno_bpt_log_clear(EunoContext *cx, EunoTree *tree, int domain);

/* bpt_directory.c */
extern bool euno_bpt_path_current(EunoTree *tree, int domain,
								  const BptPath *path);
extern bool euno_bpt_can_unpost(int domain, const BptPath *path,
								const BptLeaf *leaf);
extern bool euno_bpt_unpost(EunoContext *cx, EunoTree *tree, int domain,
							const BptPath *path, BptLeaf *leaf,
							BptInnerRoom *room);

#endif							/* BPT_DIRECTORY_H */
