# src/core/bptree/bpt_memory.c: two take from the limbo at once
/^euno_bpt_reclaim/,/^}/{s/euno_mutex_trylock(&body->limbo_mutex)/true/;s/euno_mutex_unlock(&body->limbo_mutex, cx->env);/;/}
