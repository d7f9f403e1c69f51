# src/core/bptree/bpt_remove.c: the guard word is looked at before the lock
s/if (!euno_lock_upgrade(&place.leaf->lock, place.version))/uint64_t seen = guard != NULL ? euno_load64_full(guard->word) : 0;\n\n\t\t&/;s/euno_load64_full(guard->word) != guard->expected/seen != guard->expected/
