/*-------------------------------------------------------------------------
 *
 * tap.c
 *	  The little that the unit tests need to report in TAP.
 *
 *-------------------------------------------------------------------------
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tap.h"

#define TAP_SHOWN 5

static int	tap_tests;
static int	tap_failed_tests;
static int	tap_failures;		/* of the current test; atomic */
static char tap_name[200];

void
tap_begin(const char *format,...)
{
	const char *seconds = getenv("EUNO_CASE_SECONDS");	/* then it hangs */
	va_list		args;

	if (seconds != NULL)
		alarm((unsigned) atoi(seconds));
	va_start(args, format);
	vsnprintf(tap_name, sizeof(tap_name), format, args);
	va_end(args);
	tap_failures = 0;
}

void
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

int
tap_bad(void)
{
	return __atomic_load_n(&tap_failures, __ATOMIC_RELAXED);
}

void
tap_end(void)
{
	tap_tests++;
	if (tap_failures > 0)
		tap_failed_tests++;
	printf("%s %d - %s\n", tap_failures > 0 ? "not ok" : "ok", tap_tests, tap_name);
	fflush(stdout);
}

int
tap_done(void)
{
	printf("1..%d\n", tap_tests);
	return tap_failed_tests > 0 || tap_tests == 0;
}
