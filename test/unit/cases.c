/*-------------------------------------------------------------------------
 *
 * cases.c
 *	  Small cases for schedules: a tree, and what a few threads do to it.
 *
 * To add one, name the keys (stage.h: four entries fill a leaf), the operations
 * that make the tree, and those of each thread.  A case of two threads is small:
 * all its schedules of at most two preemptions are run.  Any tree must stand
 * any case; what a structure does not have (merges, domains), its functions
 * leave out.
 *
 *-------------------------------------------------------------------------
 */
#include "cases.h"

/* name, keys, start, threads, domains, items a batch, flags */
const Case	cases[] = {
	{"insert-insert", KEYS_FIXED, "i0 i4 i8 i12", {"i2 i3", "i9 i2"}, 1, 8, 0},
	{"insert-insert-3", KEYS_SLOTTED, "i0 i4 i8 i12", {"i2", "i9 r4", "i5 c9"}, 1, 8, 0},
	{"insert-read", KEYS_FIXED, "i0 i4 i8 i12", {"i2 i6", "f0-12"}, 1, 8, 0},
	{"insert-read-3", KEYS_SLOTTED, "i0 i4 i8 i12", {"i2 r8", "f0-12", "i13 i1"}, 1, 2, 0},
	{"insert-back", KEYS_FIXED, "i0 i4 i8 i12", {"i2 i6", "b0-12"}, 1, 8, 0},
	{"insert-back-3", KEYS_SLOTTED, "i0 i4 i8 i12 i16 i20", {"i2 r8", "b0-20", "i13 i1"}, 1, 2, 0},
	{"remove-insert", KEYS_SLOTTED, "i0 i4 i8", {"r4 i4", "i4 r4", "c4 c4"}, 1, 8, 0},
	{"remove-read", KEYS_FIXED, "i0-8", {"r1-3", "f0-8", "b0-8"}, 1, 3, CASE_EMPTIES},
	{"guard", KEYS_FIXED, "i0 i4 i8", {"g4 c4", "G r4 i4 c4"}, 1, 8, 0},
	{"insert-alike", KEYS_POSTING, "i0 i4 i8", {"i12", "i13"}, 1, 8, 0},
	{"insert-find", KEYS_FIXED, "i0 i4 i8 i12", {"i2", "c8"}, 1, 8, 0},
	{"insert-range", KEYS_FIXED, "i0 i4 i8 i12", {"i9", "f4-12"}, 1, 8, 0},
	{"merge-find-1", KEYS_FIXED, "i0-4 r0-2", {"m", "c4"}, 1, 8, 0},
	{"split-merge", KEYS_FIXED, "i0-9 r1-2 r5-8", {"i1 i2 i3", "m"}, 1, 8, 0},
	{"split-merge-2", KEYS_SLOTTED, "i0-12 r1-3 r5-7 r9-11", {"i5 i6 i7 c8", "m", "i9 r0"}, 2, 8, 0},
	{"merge-read", KEYS_FIXED, "i0-9 r1-2 r5-8", {"m", "f0-9"}, 1, 8, 0},
	{"merge-back", KEYS_FIXED, "i0-9 r1-2 r5-8", {"m", "b0-9"}, 1, 8, 0},
	{"merge-find", KEYS_FIXED, "i0-9 r1-2 r5-8", {"m", "c9 r9 c0"}, 1, 8, 0},
	{"merge-insert", KEYS_FIXED, "i0-9 r1-2 r4-8", {"m", "i5 r3 c9"}, 1, 8, 0},
	{"merge-below", KEYS_POSTING, "i4 i0-2 i8 i12 i16 i20 r4 r8 r12 r16 r20", {"m", "i3 c0"}, 1, 8, 0},
	{"merge-alike", KEYS_POSTING, "i0-2 i4 i8 i12 i16 r0 r2 r4 r8 r12 r16", {"m", "r1 i2"}, 1, 8, 0},
	{"merge-merge", KEYS_SLOTTED, "i0-12 r1-3 r5-7 r9-11", {"m", "m", "c4 c8 c12"}, 1, 8, 0},
	{"empty-read", KEYS_FIXED, "i0-12 r1-11", {"m i6", "f0-12", "b0-12"}, 1, 8, CASE_EMPTIES},
	{"posting", KEYS_POSTING, "i0-5 i8-10", {"i6 r1 i7", "r0 i11", "f0-11"}, 1, 3, 0},
	{"posting-split", KEYS_POSTING, "i0-2 i4-6 i8 i12", {"i16 i3", "r5 i17 i7", "b0-17"}, 1, 4, 0},
	{"root", KEYS_FIXED, "i0 i4 i8 i12", {"i5 c12", "i9 c0", "i1 c8"}, 2, 8, 0},
	{"root-compare", KEYS_COMPARE, "i0-11", {"i12-14", "i15-17", "c3 c11"}, 1, 8, 0},
	{"post-long", KEYS_LONG, "i0-20", {"i21-23", "i24-26", "c19 c4"}, 1, 8, 0},
	{"post-descent", KEYS_LONG, "i0-14", {"i15-18", "f10-18", "r12 i12"}, 1, 8, 0},
	{"post-merge", KEYS_FIXED, "i0-4 r0-2", {"i5-7", "m", "m c4"}, 1, 8, 0},
	{"post-stale", KEYS_FIXED, "i0-3", {"i4-5 c5", "r0-3 m", "c4 c5 i6"}, 1, 8, 0},
	{"compare-read", KEYS_COMPARE, "i0 i4 i8 i12", {"i2 i6", "f0-12", "b0-12"}, 1, 8, 0},
	{"compare-merge", KEYS_COMPARE, "i0-9 r1-2 r5-8", {"m", "i3 r3", "c9 f0-9"}, 1, 8, 0},
	{"walk-split", KEYS_FIXED, "i0 i4 i8 i12", {"w4-8", "i2 i6", "i13"}, 1, 8, 0},
	{"walk-merge", KEYS_FIXED, "i0-9 r1-2 r5-8", {"w4", "m", "m"}, 1, 8, 0},
	{"walk-posting", KEYS_POSTING, "i0-2 i4-6 i8 i12", {"w5-8", "i16 i3", "r4 c6"}, 1, 8, 0},
	{"walks", KEYS_SLOTTED, "i0-8 r1-2", {"w3-4", "w4-5 m", "i1 i2"}, 1, 8, 0},
	{"reuse", KEYS_FIXED, "i0-12 r1-2 r5-7 r9-11", {"m i1 i2 i3", "f0-12", "c8 c12"}, 1, 2, 0},
	{"reuse-inner", KEYS_LONG, "i0-20 r1-19", {"m i4-6", "c20 c0", "b0-20"}, 1, 8, CASE_EMPTIES},
	{"verify", KEYS_SLOTTED, "i0-9 r1-2 r5-8", {"v", "i1 i2 i3 r0", "m"}, 1, 8, 0},
	{"hazard", KEYS_FIXED, "i0 i4 i8 i12", {"s0-12", "d4-8", "i9"}, 1, 8, 0},
	{"lookup", KEYS_FIXED, "i0 i4 i8 i12", {"i9 i2", "l8 l9"}, 1, 8, 0},
	{"lookup-3", KEYS_FIXED, "i0-9 r1-2 r5-8", {"m r4", "l4 l9 l0", "i5 i6"}, 1, 8, 0},
	{"lookup-list", KEYS_POSTING, "i0-2 i4-6 i8 i12", {"i16 i7", "l4", "r5 l16"}, 1, 8, 0},
	{"kill", KEYS_FIXED, "i0 i4 i8", {"g4 c4", "d4 i4 c4"}, 1, 8, 0},
	{"kill-split", KEYS_FIXED, "i0 i4 i8 i12", {"g4 g8", "d4-8 i4 i8 c8", "i9 i10"}, 1, 8, 0},
	{"hazard-1", KEYS_FIXED, "i4", {"s4", "d4"}, 1, 8, 0},
	{"evict", KEYS_FIXED, "i0 i4 i8 i12", {"c4 f0-12", "E"}, 1, 2, CASE_PINNED},
	{"evict-split", KEYS_FIXED, "i0 i4 i8 i12", {"f0-12 c8", "E", "i2 i3"}, 1, 2, CASE_PINNED},
	{"evict-merge", KEYS_FIXED, "i0-9 r1-2 r5-8", {"b0-9", "m m", "E"}, 1, 8, CASE_PINNED},
	{"log-split", KEYS_FIXED, "i0-4", {"i5-7", "c7 M c2"}, 2, 8, 0},
	{"log-both", KEYS_FIXED, "D2 i0-4", {"i5-7 M", "i8-11 M", "c9 c6"}, 2, 8, 0},
	{"log-merge", KEYS_FIXED, "D2 i0-12 r1-3 r5-7", {"m M", "i13-15 M", "c15 c4"}, 2, 8, 0},
	{"log-lagging", KEYS_FIXED, "D2 i0-8", {"i9-14", "M", "f0-14"}, 2, 8, CASE_LAGGING},
	{"log-reuse", KEYS_FIXED, "D2 i0-8 r1-7", {"i9-12", "m", "M c9"}, 2, 8, CASE_LAGGING},
	{"log-taken", KEYS_FIXED, "D2 i0-7", {"i8", "r4-7 m m M"}, 2, 8, 0},
	/* contended leaves: two segments, of two entries each */
	{"scatter-insert", KEYS_FIXED, "i0 i8 i12 i16 a0", {"i2 c6", "i6 c2"}, 1, 8, CASE_MODES},
	{"scatter-same", KEYS_FIXED, "i0 i8 i12 a0", {"i2 r2", "i2 c2"}, 1, 8, CASE_MODES},
	{"scatter-reuse", KEYS_FIXED, "i0 i8 i12 a0 i4 i2", {"r4 i5 r2 i4", "c4 c2"}, 1, 8, CASE_MODES},
	{"scatter-same-3", KEYS_FIXED, "i0 i8 i12 a0", {"i2 c2", "i2", "r2 i2"}, 1, 8, CASE_MODES},
	{"scatter-read", KEYS_FIXED, "i0 i8 i12 a0 i4", {"i2 r4", "f0-16"}, 1, 8, CASE_MODES},
	{"scatter-read-3", KEYS_FIXED, "i0 i8 i12 a0 i4 i6", {"i2 r6", "r4 i5", "f0-16"}, 1, 8, CASE_MODES},
	{"scatter-back", KEYS_FIXED, "i0 i8 i12 a0 i4", {"i2 r4", "b0-16", "r8"}, 1, 2, CASE_MODES},
	{"scatter-moved", KEYS_FIXED, "i0 i8 i12 a0 i4", {"r8 i8", "f0-16 c8"}, 1, 8, CASE_MODES},
	{"scatter-fold", KEYS_FIXED, "i0 i8 a0 i2 i4", {"i6 i10", "i5 r2", "c4 c6"}, 1, 8, CASE_MODES},
	{"scatter-fold-read", KEYS_FIXED, "i0 i8 a0 i2 i4 i6", {"i10 i5", "f0-12"}, 1, 8, CASE_MODES},
	{"scatter-split", KEYS_FIXED, "i0-3 a0", {"i4-6", "i7-9", "c3 c5"}, 1, 8, CASE_MODES},
	{"scatter-split-read", KEYS_FIXED, "i0-3 a0 i4-5", {"i6-8 r5", "f0-9", "c5 r3"}, 1, 8, CASE_MODES},
	{"scatter-lookup", KEYS_FIXED, "i0-12 a6 i14", {"i20 r20 i20", "l20 l6"}, 1, 8, CASE_MODES},
	{"scatter-find", KEYS_FIXED, "i0 i8 i12 a0 i4", {"i2 z0", "c2 c4"}, 1, 8, CASE_MODES},
	{"scatter-calm", KEYS_FIXED, "i0 i8 i12 a0 i2", {"z0", "i4 c2", "r2 c4"}, 1, 8, CASE_MODES},
	{"scatter-modes", KEYS_FIXED, "i0 i8 i12", {"a0 i2", "i4 z0", "c2 c4"}, 1, 8, CASE_MODES},
	{"scatter-both", KEYS_FIXED, "i0 i8 i12", {"a0 z0", "a0 i4", "z0 c4"}, 1, 8, CASE_MODES},
	{"scatter-guard", KEYS_FIXED, "i0 i8 i12 a0 i4", {"g4 c4", "G r4 i4 c4"}, 1, 8, CASE_MODES},
	{"scatter-kill", KEYS_FIXED, "i0 i8 i12 a0 i4", {"g4 c4", "d4 i4 c4"}, 1, 8, CASE_MODES},
	{"scatter-hazard", KEYS_FIXED, "i0 i8 a0 i4", {"s0-12", "d4-8", "i9"}, 1, 8, CASE_MODES},
	{"scatter-walk", KEYS_FIXED, "i0 i8 i12 a0 i4 i6", {"w4-8", "z0", "i2 i13"}, 1, 8, CASE_MODES},
	{"scatter-walk-fold", KEYS_FIXED, "i0 i8 a0 i4 i6 i2", {"w4-6", "i10 i11", "c2"}, 1, 8, CASE_MODES},
	{"scatter-merge", KEYS_FIXED, "i0-9 r1-2 r5-8", {"m", "a0 i1 i3 i5", "c9 f0-9"}, 1, 8, CASE_MODES},
	{"scatter-posting", KEYS_POSTING, "i0-1 i4 a0 i2", {"i5 r1", "i3 l0", "f0-7"}, 1, 8, CASE_MODES},
	{"scatter-lengths", KEYS_SLOTTED, "i0 i3 a0 i6", {"i1 c6", "i9 r6", "c1"}, 1, 8, CASE_MODES},
	{"scatter-verify", KEYS_FIXED, "i0 i8 i12 a0 i4", {"v", "i2 r8", "z0"}, 1, 8, CASE_MODES},
	{"scatter-evict", KEYS_FIXED, "i0 i8 i12 a0 i4", {"c4 i2 f0-12", "E"}, 1, 8, CASE_PINNED | CASE_MODES},
	/* delegated writes: one request, then somebody else leads */
	{"crowd", KEYS_FIXED, "i0 i4 i8", {"i2 c6", "i6 r4"}, 1, 8, CASE_CROWDED},
	{"crowd-same", KEYS_FIXED, "i0 i4 i8", {"i2 r2", "i2 c2"}, 1, 8, CASE_CROWDED},
	{"crowd-3", KEYS_FIXED, "i0 i4 i8 i12", {"i2 r4", "i9 c2", "i5 r9"}, 1, 8, CASE_CROWDED},
	{"crowd-4", KEYS_SLOTTED, "i0 i4 i8", {"i1 c2", "i2", "i3", "r4 i5"}, 1, 8, CASE_CROWDED},
	{"crowd-guard", KEYS_FIXED, "i0 i4 i8", {"g4 c4", "G r8", "r0 i9"}, 1, 8, CASE_CROWDED},
	{"crowd-status", KEYS_FIXED, "i0 i4 i8", {"r2 i2 r6 r2", "i4 r4", "r8 i4"}, 1, 8, CASE_CROWDED},
	{"crowd-merge", KEYS_FIXED, "i0-9 r1-2 r5-8", {"m", "i1 c9", "i2 i3"}, 1, 8, CASE_CROWDED},
	{"crowd-late", KEYS_FIXED, "i0 i4 i8", {"i2 c6", "i6 r4"}, 1, 8, CASE_CROWDED | CASE_LATE},
	{"crowd-late-4", KEYS_FIXED, "i0 i4 i8", {"i1 c2", "i2", "i3 r4", "r0 i5"}, 1, 8, CASE_CROWDED | CASE_LATE},
	/* leaves that are moved to other domains */
	{"move-find", KEYS_FIXED, "D2 i0-9", {"p5-1 p5-0", "c5 c6", "c9"}, 2, 8, CASE_MOVES},
	{"move-read", KEYS_FIXED, "D2 i0-9", {"p5-1", "f0-9", "b0-9"}, 2, 8, CASE_MOVES},
	{"move-insert", KEYS_SLOTTED, "D2 i0-9 r1-2 r5-8", {"p9-1 c9", "i8 r9 i9 c4", "i5-6"}, 2, 8, CASE_MOVES},
	{"move-split", KEYS_FIXED, "D2 i0 i2 i4 i6 i8 i10 i12", {"p8-1 c8", "i1 i3 c6", "c4"}, 2, 8, CASE_MOVES},
	{"move-merge", KEYS_FIXED, "D2 i0-9 r1-2 r5-8", {"p9-1", "m", "i5 c9"}, 2, 8, CASE_MOVES},
	{"move-move", KEYS_SLOTTED, "D2 i0-9", {"p5-1 p9-1", "p9-1 p5-0", "c5 c9 r6"}, 2, 8, CASE_MOVES},
	{"move-walk", KEYS_FIXED, "D2 i0-9", {"w5-6", "p5-1 c7", "i10"}, 2, 8, CASE_MOVES},
	{"move-log", KEYS_FIXED, "D2 i0-8", {"i9-12 M", "p8-1 p5-1 M", "c8 c12"}, 2, 8, CASE_MOVES},
	{"move-lagging", KEYS_FIXED, "D2 i0-12", {"i13-15 p13-1", "M", "c13 c5"}, 2, 8, CASE_MOVES | CASE_LAGGING},
	{"move-compare", KEYS_COMPARE, "D2 i0-9", {"p5-1 p9-1", "i10 r5 c9", "c7"}, 2, 8, CASE_MOVES},
	{"move-wish", KEYS_FIXED, "D2 i0-9", {"c5 P", "c5 c5 c5 P c9", "r6 i6"}, 2, 8, CASE_MOVES | CASE_COUNTED},
	/* nodes of a radix tree: each size grows, some shrink, paths part */
	{"fan-2", KEYS_FAN, "i0 i2", {"i1 c2", "i3 c0"}, 1, 8, CASE_RADIX},
	{"fan-2-again", KEYS_FAN, "i0 i1 r0 r1", {"i2", "i0 i1"}, 1, 8, CASE_RADIX},
	{"fan-4", KEYS_FAN, "i0 i2 i4 i6", {"i1 c4", "i3 r2"}, 1, 8, CASE_RADIX},
	{"fan-8", KEYS_FAN, "k0-3 i0 i2 i4 i6", {"i1", "r4 c1"}, 1, 8, CASE_RADIX},
	{"fan-8-zero", KEYS_FAN, "k0-3 i2", {"i1 r2", "l0 f0-4", "i0"}, 1, 40, CASE_RADIX},
	{"fan-same", KEYS_FAN, "i0 i2 i4", {"i1 c2", "i1 c0"}, 1, 8, CASE_RADIX},
	{"fan-verify", KEYS_FAN, "i0-2", {"i3", "v"}, 1, 8, CASE_RADIX},
	{"grow-dead", KEYS_FIXED, "i0-7 r0", {"i8 m", "i0 r0 m"}, 1, 8, CASE_RADIX},
	{"fan-16", KEYS_FAN, "k0-11 i0 i2 i4 i6", {"i1", "f0-6"}, 1, 40, CASE_RADIX},
	{"fan-30", KEYS_FAN, "k0-25 i0 i2 i4 i6", {"i1", "i3 r2", "c6"}, 1, 40, CASE_RADIX},
	{"fan-52", KEYS_FAN, "k0-47 i0 i2 i4 i6", {"i1 c4", "r4 i3", "f0-4"}, 1, 40, CASE_RADIX},
	{"fan-86", KEYS_FAN, "k0-81 i0 i2 i4 i6", {"i1", "i3 c0", "r4"}, 1, 40, CASE_RADIX},
	{"fan-126", KEYS_FAN, "k0-121 i0 i2 i4 i6", {"i1", "r0 c4", "i3"}, 1, 40, CASE_RADIX},
	{"fan-index", KEYS_FAN, "k0-60 i0 i2", {"i1 i3", "c1 c0 r0"}, 1, 40, CASE_RADIX},
	{"fan-direct", KEYS_FAN, "k0-130 i0 i2", {"i1 r2", "c1 c2 r0"}, 1, 40, CASE_RADIX},
	{"shrink-4", KEYS_FAN, "i0-2 r1", {"m", "r2 i1"}, 1, 8, CASE_RADIX},
	{"shrink-8", KEYS_FAN, "i0-5 r2-5", {"m", "i2 r0"}, 1, 8, CASE_RADIX},
	{"shrink-16", KEYS_FAN, "i0-11 r3-11", {"m", "i12 r0 c1"}, 1, 8, CASE_RADIX},
	{"shrink-52", KEYS_FAN, "k0-35 x2-35 i0 i2", {"m", "i1 r2", "f0-2"}, 1, 40, CASE_RADIX},
	{"shrink-86", KEYS_FAN, "k0-60 x20-60 i0 i2", {"m", "i1 r2", "c0"}, 1, 40, CASE_RADIX},
	{"shrink-256", KEYS_FAN, "k0-140 x40-140 i0 i2", {"m", "i1 r2", "c0"}, 1, 40, CASE_RADIX},
	{"prefix", KEYS_FAN, "i0 i1", {"i40 c1", "r1 c0"}, 1, 8, CASE_RADIX},
	{"prefix-2", KEYS_FAN, "i0 i1", {"i40 c44", "i44 c40"}, 1, 8, CASE_RADIX},
	{"prefix-grow", KEYS_FAN, "i0-3", {"i40 c4", "i4 c0"}, 1, 8, CASE_RADIX},
	{"prefix-3", KEYS_FAN, "i0-2", {"i40 r1", "i44 c40", "f0-44 i3"}, 1, 8, CASE_RADIX},
	{"prefix-copy", KEYS_FAN, "i0 i40 i1 i2 r40", {"m", "i3 r0"}, 1, 8, CASE_RADIX},
	{"prefix-back", KEYS_FAN, "i0-2 i40 r40", {"m", "i41 c0"}, 1, 8, CASE_RADIX},
	{"prefix-lift", KEYS_FIXED, "i0 i1 r1", {"m", "i1 c0 i2"}, 1, 8, CASE_RADIX},
	{"path-dead", KEYS_FIXED, "i0 i1 r1", {"i2", "i1 c0 m", "m"}, 1, 8, CASE_RADIX},
	{"below", KEYS_FAN, "i0 i1 i40", {"i2", "f0-40 c1"}, 1, 8, CASE_RADIX},
	/* the same with wide slots */
	{"wide-read", KEYS_WIDE, "i0 i2", {"i4 i6", "f0-8", "i1 c4"}, 1, 8, CASE_RADIX},
	{"wide-again", KEYS_WIDE, "i0 i2 i4", {"r2 i3", "f0-4", "c2"}, 1, 8, CASE_RADIX},
	{"wide-same", KEYS_WIDE, "i0 i2 i4", {"r2 i2", "r2 i3 c3"}, 1, 8, CASE_RADIX},
	{"wide-part", KEYS_WIDE, "i0 i2 i4", {"i1 c0", "i5 r4", "f0-5"}, 1, 8, CASE_RADIX},
	{"wide-back", KEYS_WIDE, "i0 i1 i2 i4 r1", {"m", "i1 r0", "c0"}, 1, 8, CASE_RADIX},
	{"wide-index", KEYS_WIDE, "k0-60 i0 i2", {"i4 i6", "c4 c2 r0", "f0-6"}, 1, 40, CASE_RADIX},
	{"wide-direct", KEYS_WIDE, "k0-187 i0 i2 i4", {"i6", "i8 c2"}, 1, 40, CASE_RADIX},
	{"widest-again", KEYS_WIDEST, "i0 i2 i4", {"r2 i3", "f0-4", "c2"}, 1, 8, CASE_RADIX},
	{"domains", KEYS_FIXED, "i0-8", {"D2 D1", "i9-12 c0", "c8 M"}, 2, 8, 0},
};

const uint32_t ncases = sizeof(cases) / sizeof(cases[0]);

/*
 * Runs that were wrong once, by what was wrong.  A change of the code changes
 * what they do; the mutants (test/unit/mutants) do not wear out.
 */
const Kept	kept[] = {
	/* nobody ordered the unlinking before the look at the pins */
	{"bptree", "merge-find-1", "wr20180202"},
	{"bptree", "post-merge", "wp20180104,393,2"},
};

const uint32_t nkept = sizeof(kept) / sizeof(kept[0]);
