import 'reflect-metadata';
import { buildOpenApi } from '../adapters/http/openapi/openapi.ts';
import type { Route } from '../adapters/http/route.ts';
import { Closers } from '../bootstrap/wiring/closers.ts';
import { openPlatform } from '../bootstrap/wiring/platform.ts';
import { collectRoutes } from '../bootstrap/wiring/routes.ts';
import { readSettings } from '../config/settings.ts';

/** @returns the OpenAPI document with exact schemas, as JSON. Releases are compared with it. */
export function exactApiDocument(): Promise<string> {
  return withRoutes((routes) => JSON.stringify(buildOpenApi(routes, { publicUrl: 'http://localhost:3000', version: '0', isExact: true })));
}

/** @returns the method and path of each operation of the document, such as `GET /session/:id`. */
export function allOperations(): Promise<readonly string[]> {
  return withRoutes((routes) => routes.map(({ method, path }) => `${method.toUpperCase()} ${path}`));
}

/** Collects the routes of a service that is wired, and that neither stores nor serves anything. */
async function withRoutes<T>(use: (routes: readonly Route[]) => T): Promise<T> {
  const closers = new Closers();
  const settings = readSettings({
    DATABASE_URL: 'sqlite::memory:',
    MASTER_SECRET: 'no secret here since nothing is sealed with it',
    AUTH_CLIENT_ID: 'root',
    AUTH_CLIENT_SECRET: 'no one can log in with it',
    LOG_LEVEL: 'silent',
  });
  try {
    return use(collectRoutes(await openPlatform(settings, closers)));
  } finally {
    await closers.closeAll();
  }
}
