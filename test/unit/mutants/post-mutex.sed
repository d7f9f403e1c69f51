# src/core/bptree/bpt_directory.c: two change a directory at once
/^euno_bpt_post/,/^}/{s/if (!euno_mutex_trylock(&dir->mutex))/if (0)/;s/euno_mutex_unlock(&dir->mutex, cx->env)/(void) euno_add64(\&dir->mutex.word, EUNO_LOCK_VERSION)/}
