# src/core/euno_lock.h: a writer locks whatever the version is
/^euno_lock_upgrade/,/^}/s/if (!euno_cas64/version = euno_load64(\&lock->word);\n\tif ((version \& 3) != 0 || !euno_cas64/
