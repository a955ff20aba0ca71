import 'reflect-metadata';
import { readFileSync, writeFileSync } from 'node:fs';
import { buildOpenApi } from '../adapters/http/openapi/openapi.ts';
import { Closers } from '../bootstrap/wiring/closers.ts';
import { openPlatform } from '../bootstrap/wiring/platform.ts';
import { collectRoutes } from '../bootstrap/wiring/routes.ts';
import { readSettings } from '../config/settings.ts';
import { describeLimits } from './describe-limits.ts';

/** `npm run docs:limits`: writes the tables of docs/reference/limits.md again. The service is not started. */
const file = new URL('../docs/reference/limits.md', import.meta.url);
const MARKS = ['<!-- limits -->\n', '\n<!-- /limits -->'] as const;

const closers = new Closers();
const settings = readSettings({
  DATABASE_URL: 'sqlite::memory:',
  MASTER_SECRET: 'no secret here since nothing is sealed with it',
  AUTH_CLIENT_ID: 'nobody',
  AUTH_CLIENT_SECRET: 'no one can log in with it',
  LOG_LEVEL: 'silent',
});
const routes = collectRoutes(await openPlatform(settings, closers));
const document = buildOpenApi(routes, { publicUrl: settings.PUBLIC_URL, version: '0' });
const [begin, end] = MARKS;
const text = readFileSync(file, 'utf8');
const [head] = text.split(begin);
const [, foot] = text.split(end);
writeFileSync(file, `${head}${begin}${describeLimits(routes, document)}${end}${foot}`);
await closers.closeAll();
