import { madeOnce } from '../../application/made-once.ts';
import { RESERVED_TENANT_IDS } from '../../domain/tenants/tenant.ts';
import type { Route } from './route.ts';

/** The routes of an address, whatever their methods. */
export function routesAt(routes: readonly Route[], path: string, prefix: string): readonly Route[] {
  const inside = insidePath(path, prefix);
  const isTenants = !RESERVED_TENANT_IDS.has(inside.split('/', 2)[1] ?? '');
  const fixed = routes.filter((route) => route.path === inside);
  if (fixed.length > 0) return fixed;
  return routes.filter(
    (route) => (isTenants || !route.path.startsWith('/:tenant')) && patternOf(route.path).test(inside),
  );
}

/** Addresses that are no names of things, and their form behind a path. */
export function fixedAddresses(routes: readonly Route[], prefix: string): ReadonlySet<string> {
  const paths = routes.map(({ path }) => path).filter((path) => !path.includes(':'));
  return new Set(prefix === '' ? paths : [...paths, ...paths.map((path) => publicPath(path, prefix))]);
}

const WELL_KNOWN = /^(\/\.well-known\/[^/]+)(\/.*)$/;

/** RFC 8414 section 3.1: the path of an identifier stands after the well-known name, every other one before all. */
export function publicPath(path: string, prefix: string): string {
  const [, name = '', rest = path] = WELL_KNOWN.exec(path) ?? [];
  return name + prefix + rest;
}

/** Undoes `publicPath`. */
function insidePath(path: string, prefix: string): string {
  const [, name = '', rest = path] = WELL_KNOWN.exec(path) ?? [];
  return rest.startsWith(`${prefix}/`) ? name + rest.slice(prefix.length) : path;
}

const patterns = new Map<string, RegExp>();

function patternOf(path: string): RegExp {
  const source = () => path.replaceAll('.', '\\.').replaceAll(/:[A-Za-z]+/g, '[^/]+');
  return madeOnce(patterns, path, () => new RegExp(`^${source()}$`));
}
