-- CREATE TABLE not_code (id int);
CREATE SCHEMA IF NOT EXISTS mail;

CREATE TABLE mail.letter (
    id bigint PRIMARY KEY,
    body text DEFAULT ';',
    "to" text NOT NULL
);

create temporary table if not exists `draft` (
  id int /* ; */
);

CREATE UNIQUE INDEX letter_to ON mail.letter ("to");

CREATE OR REPLACE VIEW mail."Sent Letters" AS
    SELECT * FROM mail.letter
    WHERE body LIKE '%create table x (%';

CREATE MATERIALIZED VIEW mail.totals AS
SELECT count(*), CASE WHEN true THEN 1 ELSE 2 END FROM mail.letter;

CREATE TYPE mail.outcome AS ENUM ('sent', 'lost');
CREATE DOMAIN positive AS int CHECK (VALUE > 0);

CREATE FUNCTION mail.size(letter mail.letter) RETURNS int AS $body$
BEGIN
    CREATE TABLE inside (id int);
    RETURN length(letter.body);
END;
$body$ LANGUAGE plpgsql;

CREATE TRIGGER letter_changed
    AFTER UPDATE ON mail.letter
    FOR EACH ROW EXECUTE FUNCTION mail.size();

INSERT INTO mail.letter VALUES (1, 'a;b', 'c');

CREATE DEFINER = `root`@`localhost` PROCEDURE send_all(IN times INT)
BEGIN
    DECLARE n INT DEFAULT 0;
    WHILE n < times DO
        IF n > 1 THEN
            SET n = n + CASE n WHEN 1 THEN 2 ELSE 1 END;
        END IF;
        SET n = n + 1;
    END WHILE;
END;

CREATE FUNCTION total RETURN NUMBER IS
    result NUMBER := 0;
BEGIN
    RETURN result;
END;

CREATE PROCEDURE [dbo].[Purge] AS
SELECT 1
GO
CREATE TABLE [dbo].[Last] (
    [Id] int
)
GO
