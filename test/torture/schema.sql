-- What the torture test adds to the tables of the differential test: a ledger.
-- Each transaction of pgbench moves an amount between two accounts, so that the
-- sum over all of them never changes, and notes it in the log.

CREATE SCHEMA torture;
CREATE TABLE torture.account (id int, owner text, balance int) WITH (fillfactor = 80);
INSERT INTO torture.account SELECT g, 'owner ' || g, 1000 FROM generate_series(1, 2000) g;
CREATE UNIQUE INDEX account_id ON torture.account USING euno (id);
CREATE INDEX account_owner ON torture.account USING euno (owner, balance);
CREATE TABLE torture.log (number bigserial, account int, amount int, at timestamptz DEFAULT now());
CREATE UNIQUE INDEX log_number ON torture.log USING euno (number);
CREATE INDEX log_account ON torture.log USING euno (account, at) INCLUDE (amount);
CREATE UNLOGGED TABLE torture.recent (account int, at timestamptz);
CREATE INDEX recent_account ON torture.recent USING euno (account);
CREATE INDEX recent_art ON torture.recent USING euno (account) WITH (structure = art);
CREATE UNIQUE INDEX account_art ON torture.account USING euno (id) WITH (structure = art);
CREATE INDEX account_balance ON torture.account USING euno (balance) WITH (structure = art, sync = rowex);
CREATE UNIQUE INDEX log_art ON torture.log USING euno (number) WITH (structure = art, sync = rowex);
CREATE INDEX log_account_art ON torture.log USING euno (account, at) WITH (structure = art);

-- Every euno index that is valid.
CREATE VIEW torture.index AS
	SELECT indexrelid::regclass AS name, indrelid::regclass AS tab
	FROM euno_stat_indexes JOIN pg_index USING (indexrelid) WHERE indisvalid;

-- The sums of a table as an index gives them, and as the table does.
CREATE FUNCTION torture.sums(query text, through_index bool) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
	answer text;
	setting text;
BEGIN
	FOREACH setting IN ARRAY '{enable_seqscan, enable_sort}'::text[] LOOP
		PERFORM set_config(setting, (NOT through_index)::text, true);
	END LOOP;
	FOREACH setting IN ARRAY '{enable_indexscan, enable_indexonlyscan, enable_bitmapscan}'::text[] LOOP
		PERFORM set_config(setting, through_index::text, true);
	END LOOP;
	EXECUTE query INTO answer;
	RETURN answer;
END
$$;

-- What is wrong, a row each; none: nothing.
CREATE FUNCTION torture.complaints() RETURNS SETOF text LANGUAGE plpgsql AS
$$
DECLARE
	query text;
	found text;
	expected text;
BEGIN
	FOREACH query IN ARRAY ARRAY[
		'SELECT (count(*), sum(id), sum(balance))::text FROM torture.account WHERE id > 0',
		'SELECT (count(*), sum(id), sum(balance))::text FROM torture.account WHERE owner > ''''',
		'SELECT (count(*), sum(id), sum(balance))::text FROM torture.account WHERE balance > -1000000',
		'SELECT (count(*), sum(account), sum(amount))::text FROM torture.log WHERE number > 0',
		'SELECT (count(*), sum(account), sum(amount))::text FROM torture.log WHERE account > 0',
		'SELECT (count(*), sum(account))::text FROM torture.recent WHERE account > 0',
		'SELECT md5(string_agg(account || '' '' || amount, '','')) FROM (SELECT account, amount FROM torture.log WHERE account BETWEEN 100 AND 300 ORDER BY account, at, amount) s']
	LOOP
		found := torture.sums(query, true);
		expected := torture.sums(query, false);
		IF found IS DISTINCT FROM expected THEN
			RETURN NEXT format('%s: %s through an index, %s without', query, found, expected);
		END IF;
	END LOOP;
	SELECT (count(*), sum(balance))::text INTO found FROM torture.account;
	IF found <> '(2000,2000000)' THEN
		RETURN NEXT format('accounts are %s', found);
	END IF;
END
$$;
