/*-------------------------------------------------------------------------
 *
 * tap.h
 *	  The little that the unit tests need to report in TAP.
 *
 * A test is a span between tap_begin and tap_end; it fails when any CHECK in
 * it failed, in whichever thread.  Only the first few failures of a test are
 * printed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TAP_H
#define TAP_H

#include <stdarg.h>
#include <stdio.h>

#define TAP_SHOWN 5

static int	tap_tests;
static int	tap_failed_tests;
static int	tap_failures;		/* of the current test; atomic */
static char tap_name[200];

static inline void __attribute__((format(printf, 1, 2)))
tap_begin(const char *format,...)
{
	va_list		args;

	va_start(args, format);
	vsnprintf(tap_name, sizeof(tap_name), format, args);
	va_end(args);
	tap_failures = 0;
}

static inline void __attribute__((format(printf, 3, 4)))
tap_fail(const char *file, int line, const char *format,...)
{
	va_list		args;
	char		text[400];

	if (__atomic_add_fetch(&tap_failures, 1, __ATOMIC_RELAXED) > TAP_SHOWN)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	printf("# %s:%d: %s\n", file, line, text);
	fflush(stdout);
}

#define CHECK(condition, ...) \
	do { if (!(condition)) tap_fail(__FILE__, __LINE__, __VA_ARGS__); } while (0)

/* How often the current test has failed so far: loops may stop early. */
static inline int
tap_bad(void)
{
	return __atomic_load_n(&tap_failures, __ATOMIC_RELAXED);
}

static inline void
tap_end(void)
{
	tap_tests++;
	if (tap_failures > 0)
		tap_failed_tests++;
	printf("%s %d - %s\n", tap_failures > 0 ? "not ok" : "ok", tap_tests, tap_name);
	fflush(stdout);
}

/* Prints the plan; returns the program's exit code. */
static inline int
tap_done(void)
{
	printf("1..%d\n", tap_tests);
	return tap_failed_tests > 0 || tap_tests == 0;
}

#endif							/* TAP_H */
