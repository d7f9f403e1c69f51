-- After TPC-C: its tables, shortened, and its five transactions as functions,
-- in the schema that search_path names first.  lib/Tpcc.pm sets the variables
-- and adds the indexes.

CREATE TABLE warehouse (w_id int, w_tax numeric, w_ytd numeric) WITH (fillfactor = 10);
CREATE TABLE district (d_w_id int, d_id int, d_tax numeric, d_ytd numeric, d_next_o_id int) WITH (fillfactor = 10);
CREATE TABLE customer (c_w_id int, c_d_id int, c_id int, c_first text, c_last text, c_discount numeric,
	c_balance numeric, c_payments int, c_data text);
CREATE TABLE history (h_w_id int, h_d_id int, h_c_id int, h_date timestamp, h_amount numeric);
CREATE TABLE orders (o_w_id int, o_d_id int, o_id int, o_c_id int, o_entry timestamp, o_carrier int, o_lines int);
CREATE TABLE new_order (no_w_id int, no_d_id int, no_o_id int);
CREATE TABLE order_line (ol_w_id int, ol_d_id int, ol_o_id int, ol_number int, ol_i_id int, ol_delivery timestamp,
	ol_quantity int, ol_amount numeric, ol_info char(24));
CREATE TABLE item (i_id int, i_name text, i_price numeric);
CREATE TABLE stock (s_w_id int, s_i_id int, s_quantity int, s_ytd int, s_orders int, s_data char(50));

INSERT INTO warehouse SELECT w, 0.1, 300000 FROM generate_series(1, :warehouses) w;
INSERT INTO district SELECT w, d, 0.1, 30000, :customers + 1
	FROM generate_series(1, :warehouses) w, generate_series(1, 10) d;
INSERT INTO customer SELECT w, d, c, 'first' || hashint4(c), 'LAST' || c % 1000, 0.1, -10, 1, repeat('x', 200)
	FROM generate_series(1, :warehouses) w, generate_series(1, 10) d, generate_series(1, :customers) c;
INSERT INTO orders SELECT w, d, o, 1 + o * 7 % :customers, now(), CASE WHEN o <= :customers * 7 / 10 THEN 1 END, 10
	FROM generate_series(1, :warehouses) w, generate_series(1, 10) d, generate_series(1, :customers) o;
INSERT INTO new_order SELECT o_w_id, o_d_id, o_id FROM orders WHERE o_carrier IS NULL;
INSERT INTO order_line SELECT o_w_id, o_d_id, o_id, l, 1 + abs(hashint4(o_id * 10 + l)) % :items, now(), 5, 10, 'info'
	FROM orders, generate_series(1, 10) l;
INSERT INTO item SELECT i, 'item ' || i, 1 + i % 100 FROM generate_series(1, :items) i;
INSERT INTO stock SELECT w, i, 50, 0, 0, 'data' FROM generate_series(1, :warehouses) w, generate_series(1, :items) i;

CREATE FUNCTION new_order(w int, d int, c int, lines int) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
	o int;
	i int;
	number int := 0;
	price numeric;
	quantity int;
	total numeric := 0;
	discount numeric;
BEGIN
	SELECT c_discount INTO STRICT discount FROM customer WHERE c_w_id = w AND c_d_id = d AND c_id = c;
	UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = w AND d_id = d RETURNING d_next_o_id - 1 INTO STRICT o;
	INSERT INTO orders VALUES (w, d, o, c, now(), NULL, lines);
	INSERT INTO new_order VALUES (w, d, o);
	-- in one order for all, lest two of them deadlock
	FOR i IN SELECT DISTINCT 1 + (random() * (current_setting('tpcc.items')::int - 1))::int FROM generate_series(1, lines) ORDER BY 1
	LOOP
		SELECT i_price INTO STRICT price FROM item WHERE i_id = i;
		UPDATE stock SET s_quantity = CASE WHEN s_quantity > 15 THEN s_quantity - 5 ELSE s_quantity + 86 END,
			s_ytd = s_ytd + 5, s_orders = s_orders + 1
			WHERE s_w_id = w AND s_i_id = i RETURNING s_quantity INTO STRICT quantity;
		number := number + 1;
		INSERT INTO order_line VALUES (w, d, o, number, i, NULL, 5, price * 5, 'info');
		total := total + price * 5;
	END LOOP;
	RETURN total * (1 - discount);
END $$;

CREATE FUNCTION payment(w int, d int, c int, amount numeric) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	payer int := c;
BEGIN
	-- three of five by name, the middle one of those who have it
	IF c % 5 < 3 THEN
		SELECT c_id INTO STRICT payer FROM customer WHERE c_w_id = w AND c_d_id = d AND c_last = 'LAST' || c % 1000
			ORDER BY c_first OFFSET (SELECT (count(*) - 1) / 2 FROM customer WHERE c_w_id = w AND c_d_id = d AND c_last = 'LAST' || c % 1000)
			LIMIT 1;
	END IF;
	UPDATE warehouse SET w_ytd = w_ytd + amount WHERE w_id = w;
	UPDATE district SET d_ytd = d_ytd + amount WHERE d_w_id = w AND d_id = d;
	UPDATE customer SET c_balance = c_balance - amount, c_payments = c_payments + 1 WHERE c_w_id = w AND c_d_id = d AND c_id = payer;
	INSERT INTO history VALUES (w, d, payer, now(), amount);
END $$;

CREATE FUNCTION order_status(w int, d int, c int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	o int;
	n bigint;
BEGIN
	PERFORM c_balance FROM customer WHERE c_w_id = w AND c_d_id = d AND c_id = c;
	SELECT o_id INTO o FROM orders WHERE o_w_id = w AND o_d_id = d AND o_c_id = c ORDER BY o_id DESC LIMIT 1;
	SELECT count(ol_amount) INTO n FROM order_line WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id = o;
	RETURN n;
END $$;

CREATE FUNCTION delivery(w int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	o int;
	c int;
	total numeric;
BEGIN
	-- one at a time for each warehouse
	PERFORM pg_advisory_xact_lock(w);
	FOR d IN 1 .. 10 LOOP
		SELECT no_o_id INTO o FROM new_order WHERE no_w_id = w AND no_d_id = d ORDER BY no_o_id LIMIT 1;
		CONTINUE WHEN o IS NULL;
		DELETE FROM new_order WHERE no_w_id = w AND no_d_id = d AND no_o_id = o;
		UPDATE orders SET o_carrier = 5 WHERE o_w_id = w AND o_d_id = d AND o_id = o RETURNING o_c_id INTO STRICT c;
		UPDATE order_line SET ol_delivery = now() WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id = o;
		SELECT sum(ol_amount) INTO total FROM order_line WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id = o;
		UPDATE customer SET c_balance = c_balance + total WHERE c_w_id = w AND c_d_id = d AND c_id = c;
	END LOOP;
END $$;

CREATE FUNCTION stock_level(w int, d int) RETURNS bigint LANGUAGE sql AS $$
	SELECT count(DISTINCT s_i_id) FROM district, order_line, stock
		WHERE d_w_id = w AND d_id = d AND ol_w_id = w AND ol_d_id = d AND ol_o_id BETWEEN d_next_o_id - 20 AND d_next_o_id - 1
		AND s_w_id = w AND s_i_id = ol_i_id AND s_quantity < 15
$$;
