import 'reflect-metadata';
import { buildOpenApi } from '../adapters/http/openapi.ts';
import { Closers } from '../bootstrap/closers.ts';
import { openPlatform } from '../bootstrap/platform.ts';
import { collectRoutes } from '../bootstrap/routes.ts';
import { readSettings } from '../config/settings.ts';

/** @returns the OpenAPI document with exact schemas, as JSON: what releases are compared by. */
export async function exactApiDocument(): Promise<string> {
  const closers = new Closers();
  const settings = readSettings({
    DATABASE_URL: 'sqlite::memory:',
    MASTER_SECRET: 'no secret here since nothing is sealed with it',
    AUTH_CLIENT_ID: 'root',
    AUTH_CLIENT_SECRET: 'nobody logs in with it',
    LOG_LEVEL: 'silent',
  });
  try {
    const routes = collectRoutes(await openPlatform(settings, closers));
    return JSON.stringify(
      buildOpenApi(routes, { publicUrl: 'http://localhost:3000', version: '0', isExact: true }),
    );
  } finally {
    await closers.closeAll();
  }
}
