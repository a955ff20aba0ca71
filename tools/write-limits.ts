import 'reflect-metadata';
import { readFileSync, writeFileSync } from 'node:fs';
import { Container } from 'inversify';
import { describeLimits } from '../adapters/http/describe-limits.ts';
import { buildOpenApi } from '../adapters/http/openapi.ts';
import { modules } from '../bootstrap/modules/all.ts';
import { Closers, openAdapters } from '../bootstrap/modules/platform.ts';
import { collectRoutes } from '../bootstrap/routes.ts';
import { readSettings } from '../config/settings.ts';

/** `npm run docs:limits`: writes the tables of docs/limits.md anew. Nothing is started. */
const file = new URL('../docs/limits.md', import.meta.url);
const MARKS = ['<!-- limits -->\n', '\n<!-- /limits -->'] as const;

const container = new Container();
const closers = new Closers();
const settings = readSettings({
  DATABASE_URL: 'sqlite::memory:',
  MASTER_SECRET: 'no secret here since nothing is sealed with it',
  AUTH_CLIENT_ID: 'nobody',
  AUTH_CLIENT_SECRET: 'nobody logs in with it',
  LOG_LEVEL: 'silent',
});
container.load(await openAdapters(settings, closers), ...modules);
const routes = collectRoutes(container);
const document = buildOpenApi(routes, { publicUrl: settings.PUBLIC_URL, version: '0' });
const [begin, end] = MARKS;
const text = readFileSync(file, 'utf8');
const [before] = text.split(begin);
const [, after] = text.split(end);
writeFileSync(file, `${before}${begin}${describeLimits(routes, document)}${end}${after}`);
await closers.closeAll();
