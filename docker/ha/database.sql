-- Creates the role and the database of Daybook, as the superuser, on the leader. May be repeated.
\set ON_ERROR_STOP on
\getenv password DAYBOOK_DATABASE_PASSWORD
-- Daybook's migrations create the role daybook_reader.
select 'create role daybook login createrole' where to_regrole('daybook') is null \gexec
alter role daybook password :'password';
select 'create database daybook owner daybook' where not exists (select from pg_database where datname = 'daybook') \gexec
\connect daybook
-- Only a superuser may create it.
create extension if not exists vector;
