/*-------------------------------------------------------------------------
 *
 * euno_shared.h
 *	  Every access of core/ to shared memory goes through here.
 *
 * Fields that other processes may be changing are only touched with these
 * accessors.  Single words are relaxed atomics unless the name says
 * otherwise: what orders them is the node's lock word (euno_lock.h), so a
 * stronger order would be paid for and not used.
 *
 * Bulk copies are plain memcpy between compiler barriers.  They may read
 * bytes that are being written; the caller validates the node's version
 * before it believes a single one of them, and has clamped every length
 * before.  Under ThreadSanitizer they are byte-wise relaxed atomics, which is
 * what the C memory model asks for and what makes such builds race-free.
 *
 * Tests take part in two ways.  With EUNO_TEST_HOOK defined, euno_test_hook(kind,
 * address, size) is called before every access, so that a test can stop a
 * process, or let another one run, at any step.  With EUNO_TEST_MODEL defined,
 * the accesses are not made at all: euno_model_...() make them, and decide what
 * is seen within what the memory orders given here allow.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EUNO_SHARED_H
#define EUNO_SHARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__SANITIZE_THREAD__)
#define EUNO_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define EUNO_TSAN 1
#endif
#endif

#ifndef EUNO_ALONE
#define EUNO_ALONE 0
#endif

typedef enum EunoHookKind
{
	EUNO_HOOK_LOAD,
	EUNO_HOOK_STORE,
	EUNO_HOOK_RMW,
	EUNO_HOOK_PREFETCH,
	EUNO_HOOK_PAUSE,			/* no address */
	EUNO_HOOK_REQUEST			/* another's operation begins; no access */
} EunoHookKind;

typedef enum EunoUpdate
{
	EUNO_UPDATE_EXCHANGE,
	EUNO_UPDATE_ADD,
	EUNO_UPDATE_OR,
	EUNO_UPDATE_AND
} EunoUpdate;

#ifdef EUNO_TEST_HOOK
extern void euno_test_hook(EunoHookKind kind, const void *address, size_t size);
#define EUNO_HOOK(kind, address, size) euno_test_hook(kind, address, size)
#else
#define EUNO_HOOK(kind, address, size) ((void) 0)
#endif

#ifdef EUNO_TEST_MODEL

extern uint64_t euno_model_load(const void *p, unsigned size, int order);
extern void euno_model_store(void *p, unsigned size, uint64_t value,
							 int order);
extern uint64_t euno_model_update(void *p, unsigned size, EunoUpdate update,
								  uint64_t value, int order);
extern bool euno_model_cas(void *p, unsigned size, uint64_t *expected,
						   uint64_t desired, int order, int failure_order);
extern void euno_model_fence(int order);
extern void euno_model_fence_all(void);
extern void euno_model_copy_out(void *to, const void *from, size_t n);
extern void euno_model_copy_in(void *to, const void *from, size_t n);
extern void euno_model_move(void *to, const void *from, size_t n);

/* What *p holds, without qualifiers. */
#define EUNO_TYPE(p) __typeof__(__atomic_load_n((p), __ATOMIC_RELAXED))

#define EUNO_LOAD(p, order) \
	((EUNO_TYPE(p)) (uintptr_t) euno_model_load((p), sizeof(*(p)), order))
#define EUNO_STORE(p, value, order) \
	euno_model_store((p), sizeof(*(p)), (uint64_t) (uintptr_t) (value), order)
#define EUNO_UPDATE(name, NAME, p, value, order) \
	((EUNO_TYPE(p)) euno_model_update((p), sizeof(*(p)), EUNO_UPDATE_##NAME, \
									  value, order))
#define EUNO_CAS(p, expected, desired, order, failure_order) \
	euno_model_cas((p), sizeof(*(p)), expected, desired, order, failure_order)
#define EUNO_FENCE(order) euno_model_fence(order)

#elif EUNO_ALONE

#define EUNO_LOAD(p, order) (*(p))
#define EUNO_STORE(p, value, order) ((void) (*(p) = (value)))
#define EUNO_UPDATE(name, NAME, p, value, order) \
	__extension__ ({ \
		__typeof__(p) update_p = (p); \
		__typeof__(*update_p + 0) update_old = *update_p; \
		euno_alone_##name(update_p, update_old, value); \
		update_old; })
#define euno_alone_exchange_n(p, old, value) (*(p) = (value))
#define euno_alone_fetch_add(p, old, value) (*(p) = (__typeof__(*(p))) ((old) + (value)))
#define euno_alone_fetch_or(p, old, value) (*(p) = (__typeof__(*(p))) ((old) | (value)))
#define euno_alone_fetch_and(p, old, value) (*(p) = (__typeof__(*(p))) ((old) & (value)))
#define EUNO_CAS(p, expected, desired, order, failure_order) \
	(*(p) == *(expected) ? (*(p) = (desired), true) : \
	 (*(expected) = *(p), false))
#define EUNO_FENCE(order) ((void) 0)

#else							/* for real */

#define EUNO_LOAD(p, order) \
	(EUNO_HOOK(EUNO_HOOK_LOAD, (p), sizeof(*(p))), \
	 __atomic_load_n((p), order))
#define EUNO_STORE(p, value, order) \
	(EUNO_HOOK(EUNO_HOOK_STORE, (p), sizeof(*(p))), \
	 __atomic_store_n((p), (value), order))
#define EUNO_UPDATE(name, NAME, p, value, order) \
	(EUNO_HOOK(EUNO_HOOK_RMW, (p), sizeof(*(p))), \
	 __atomic_##name((p), (value), order))
#define EUNO_CAS(p, expected, desired, order, failure_order) \
	(EUNO_HOOK(EUNO_HOOK_RMW, (p), sizeof(*(p))), \
	 __atomic_compare_exchange_n((p), (expected), (desired), false, order, \
								 failure_order))
#define EUNO_FENCE(order) __atomic_thread_fence(order)

#endif

#define EUNO_DEFINE_ACCESS(type, bits) \
static inline type \
euno_load##bits(const type *p) \
{ \
	return EUNO_LOAD(p, __ATOMIC_RELAXED); \
} \
static inline void \
euno_store##bits(type *p, type value) \
{ \
	EUNO_STORE(p, value, __ATOMIC_RELAXED); \
}

EUNO_DEFINE_ACCESS(uint8_t, 8)
EUNO_DEFINE_ACCESS(uint16_t, 16)
EUNO_DEFINE_ACCESS(uint32_t, 32)
EUNO_DEFINE_ACCESS(uint64_t, 64)

/* Acquire: what the releasing store published is visible afterwards. */
static inline uint64_t
euno_load64_acquire(const uint64_t *p)
{
	return EUNO_LOAD(p, __ATOMIC_ACQUIRE);
}

/* Release: everything written before is visible to whoever acquires this. */
static inline void
euno_store64_release(uint64_t *p, uint64_t value)
{
	EUNO_STORE(p, value, __ATOMIC_RELEASE);
}

static inline void
euno_store32_release(uint32_t *p, uint32_t value)
{
	EUNO_STORE(p, value, __ATOMIC_RELEASE);
}

/*
 * Acquire on success: it takes a lock.  Relaxed on failure: the caller looks
 * again before it does anything with what it saw.
 */
static inline bool
euno_cas64(uint64_t *p, uint64_t *expected, uint64_t desired)
{
	return EUNO_CAS(p, expected, desired, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* Sequentially consistent if it succeeds: it publishes what was written. */
static inline bool
euno_cas64_full(uint64_t *p, uint64_t *expected, uint64_t desired)
{
	return EUNO_CAS(p, expected, desired, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

/* Release: it gives a lock back. */
static inline uint64_t
euno_exchange64_release(uint64_t *p, uint64_t value)
{
	return EUNO_UPDATE(exchange_n, EXCHANGE, p, value, __ATOMIC_RELEASE);
}

/* Sequentially consistent: a store that later loads must not overtake. */
static inline uint64_t
euno_exchange64_full(uint64_t *p, uint64_t value)
{
	return EUNO_UPDATE(exchange_n, EXCHANGE, p, value, __ATOMIC_SEQ_CST);
}

static inline uint32_t
euno_exchange32_full(uint32_t *p, uint32_t value)
{
	return EUNO_UPDATE(exchange_n, EXCHANGE, p, value, __ATOMIC_SEQ_CST);
}

/* Relaxed: counters, which order nothing. */
static inline uint64_t
euno_add64(uint64_t *p, uint64_t value)
{
	return EUNO_UPDATE(fetch_add, ADD, p, value, __ATOMIC_RELAXED);
}

/*
 * What processes count in common, one word of it a process's own, which needs
 * no atomic instruction.
 */
typedef struct EunoCounter
{
	uint64_t	own;			/* changed by one process only at a time */
	uint64_t	shared;
} EunoCounter;

/* "own": is it this process whose word that is? */
static inline void
euno_counter_add(EunoCounter *count, bool own, int64_t change)
{
	if (own)
		euno_store64(&count->own, euno_load64(&count->own) + (uint64_t) change);
	else
		(void) euno_add64(&count->shared, (uint64_t) change);
}

/* Modulo 2^64. */
static inline uint64_t
euno_counter_read(const EunoCounter *count)
{
	return euno_load64(&count->own) + euno_load64(&count->shared);
}

/* Relaxed: a set of bits, each of which changes under a lock of its own. */
static inline void
euno_or16(uint16_t *p, uint16_t bits)
{
	(void) EUNO_UPDATE(fetch_or, OR, p, bits, __ATOMIC_RELAXED);
}

static inline void
euno_and16(uint16_t *p, uint16_t bits)
{
	(void) EUNO_UPDATE(fetch_and, AND, p, bits, __ATOMIC_RELAXED);
}

static inline uint64_t
euno_add64_full(uint64_t *p, uint64_t value)
{
	return EUNO_UPDATE(fetch_add, ADD, p, value, __ATOMIC_SEQ_CST);
}

/* Sequentially consistent, like the stores it is paired with. */
static inline uint64_t
euno_load64_full(const uint64_t *p)
{
	return EUNO_LOAD(p, __ATOMIC_SEQ_CST);
}

static inline uint32_t
euno_load32_full(const uint32_t *p)
{
	return EUNO_LOAD(p, __ATOMIC_SEQ_CST);
}

/* Sequentially consistent if it succeeds, and if it does not. */
static inline bool
euno_cas32_full(uint32_t *p, uint32_t expected, uint32_t desired)
{
#ifdef EUNO_TEST_MODEL
	uint64_t	seen = expected;
#else
	uint32_t	seen = expected;
#endif

	return EUNO_CAS(p, &seen, desired, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* Pointers: relaxed loads; published with a release store. */
#define euno_load_ptr(p) EUNO_LOAD(p, __ATOMIC_RELAXED)
#define euno_load_ptr_acquire(p) EUNO_LOAD(p, __ATOMIC_ACQUIRE)
#define euno_store_ptr(p, value) EUNO_STORE(p, value, __ATOMIC_RELEASE)

/*
 * Publishes what the pointer leads to, if it was *expected; sees what is
 * there.
 */
#ifdef EUNO_TEST_MODEL
#define euno_cas_ptr(p, expected, value) \
	__extension__ ({ \
		uint64_t	cas_seen = (uintptr_t) *(expected); \
		bool		cas_done = EUNO_CAS(p, &cas_seen, (uintptr_t) (value), \
										__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE); \
		*(expected) = (EUNO_TYPE(p)) (uintptr_t) cas_seen; \
		cas_done; })
#else
#define euno_cas_ptr(p, expected, value) \
	EUNO_CAS(p, expected, value, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
#endif

/*
 * Fences.  ThreadSanitizer does not understand them; there every access to
 * shared data is an atomic of its own and x86 needs no instruction for the
 * first two, so only the compiler is told.
 */
#ifdef EUNO_TSAN
#define euno_fence_acquire() __atomic_signal_fence(__ATOMIC_SEQ_CST)
#define euno_fence_release() __atomic_signal_fence(__ATOMIC_SEQ_CST)
#else
#define euno_fence_acquire() EUNO_FENCE(__ATOMIC_ACQUIRE)
#define euno_fence_release() EUNO_FENCE(__ATOMIC_RELEASE)
#endif

/*
 * A full fence after an atomic read-modify-write of any order.  On x86 that
 * instruction is one for all that comes before it; elsewhere (AArch64) later
 * plain loads may still overtake its store.
 */
static inline void
euno_fence_after_rmw(void)
{
#if (defined(__x86_64__) || defined(__i386__) || defined(EUNO_TSAN)) && \
	!defined(EUNO_TEST_MODEL)
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
#else
	EUNO_FENCE(__ATOMIC_SEQ_CST);
#endif
}

/*
 * The line at p will be read soon; p need not be valid.  To GCC, a function
 * that does nothing but prefetch has no effect, and calls of it are dropped:
 * the empty assembly is one.
 */
static inline void
euno_prefetch(const void *p)
{
	EUNO_HOOK(EUNO_HOOK_PREFETCH, p, 1);
	__builtin_prefetch(p);
	__asm__ __volatile__("");
}

/*
 * Prefetches by reading a byte, and p must be valid: a prefetch is dropped by
 * some machines when the page's address is not at hand either.  Nothing
 * depends on the byte, so a test sees a prefetch.
 */
static inline void
euno_fetch(const uint8_t *p)
{
#ifndef EUNO_TEST_MODEL
	uint8_t		byte;

	EUNO_HOOK(EUNO_HOOK_PREFETCH, p, 1);
	byte = __atomic_load_n(p, __ATOMIC_RELAXED);
	__asm__ __volatile__("" : : "r" (byte));
#else
	(void) p;
#endif
}

static inline void
euno_pause(void)
{
	EUNO_HOOK(EUNO_HOOK_PAUSE, NULL, 0);
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("isb");
#else
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
#endif
}

#if defined(EUNO_TEST_MODEL)

#define euno_copy_out euno_model_copy_out
#define euno_copy_in euno_model_copy_in
#define euno_move euno_model_move

#elif defined(EUNO_TSAN)

static inline void
euno_copy_out(void *to, const void *from, size_t n)
{
	EUNO_HOOK(EUNO_HOOK_LOAD, from, n);
	for (size_t i = 0; i < n; i++)
		((uint8_t *) to)[i] = __atomic_load_n((const uint8_t *) from + i,
											  __ATOMIC_RELAXED);
}

static inline void
euno_copy_in(void *to, const void *from, size_t n)
{
	EUNO_HOOK(EUNO_HOOK_STORE, to, n);
	for (size_t i = 0; i < n; i++)
		__atomic_store_n((uint8_t *) to + i, ((const uint8_t *) from)[i],
						 __ATOMIC_RELAXED);
}

static inline void
euno_move(void *to, const void *from, size_t n)
{
	uint8_t    *t = to;
	const uint8_t *f = from;

	EUNO_HOOK(EUNO_HOOK_STORE, to, n);
	if (t < f)
	{
		for (size_t i = 0; i < n; i++)
			__atomic_store_n(t + i, __atomic_load_n(f + i, __ATOMIC_RELAXED),
							 __ATOMIC_RELAXED);
	}
	else
	{
		for (size_t i = n; i-- > 0;)
			__atomic_store_n(t + i, __atomic_load_n(f + i, __ATOMIC_RELAXED),
							 __ATOMIC_RELAXED);
	}
}

#else

/* No copy is moved past a load or store of a lock word. */
#if EUNO_ALONE
#define euno_fence_copy() ((void) 0)
#else
#define euno_fence_copy() __atomic_signal_fence(__ATOMIC_SEQ_CST)
#endif

/* Shared to private; the source may be changing (see above). */
static inline void
euno_copy_out(void *to, const void *from, size_t n)
{
	EUNO_HOOK(EUNO_HOOK_LOAD, from, n);
	euno_fence_copy();
	memcpy(to, from, n);
	euno_fence_copy();
}

/* Private to shared; the node is locked or not yet published. */
static inline void
euno_copy_in(void *to, const void *from, size_t n)
{
	EUNO_HOOK(EUNO_HOOK_STORE, to, n);
	euno_fence_copy();
	memcpy(to, from, n);
	euno_fence_copy();
}

/* Within a locked node; the ranges may overlap. */
static inline void
euno_move(void *to, const void *from, size_t n)
{
	EUNO_HOOK(EUNO_HOOK_STORE, to, n);
	euno_fence_copy();
	memmove(to, from, n);
	euno_fence_copy();
}

#endif

/*
 * The first n (at most 8) bytes at p as a big-endian number.  Eight bytes at
 * p must be readable.
 */
static inline uint64_t
euno_load_be(const uint8_t *p, unsigned n)
{
	uint64_t	word;

	if (n == 0)
		return 0;
	euno_copy_out(&word, p, 8);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	word = __builtin_bswap64(word);
#endif
	return word >> (64 - 8 * n);
}

#endif							/* EUNO_SHARED_H */
