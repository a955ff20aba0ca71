import type { Request } from 'express';
import type { CachedCaller, Caller } from '../../../application/caller.ts';
import type { AuthenticateClient, AwaitTurn } from '../../../application/clients/authenticate-client.ts';
import { isRestricted } from '../../../domain/clients/client.ts';
import type { Role } from '../../../domain/clients/role.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { Access } from '../route.ts';

/** @returns the caller; undefined for a route without client authentication. @throws Failure `unauthenticated`, `forbidden`. */
export async function authenticate(
  access: Access,
  request: Request,
  authenticator: AuthenticateClient,
  turn: AwaitTurn,
): Promise<Caller | CachedCaller | undefined> {
  if (access === 'public' || access === 'wallet') return undefined;
  const token = tokenOf(access, request);
  if ('remembered' in access) return authenticator.executeCached(token, (caller) => assertAccess(access, caller), turn);
  const caller = await authenticator.execute(token, turn);
  assertAccess(access, caller);
  return caller;
}

/** @throws Failure `forbidden`. */
function assertAccess(access: Exclude<Access, string>, caller: Caller): void {
  const roles = rolesOf(access);
  if (!roles.some((role) => (caller.roles as readonly string[]).includes(role))) {
    throw new Failure('forbidden', `this call requires one of the roles ${roles.join(', ')}`);
  }
  if (caller.tenantId === null && ('anyOf' in access || 'stream' in access)) {
    throw new Failure('forbidden', 'this call is for a tenant; use a client of that tenant');
  }
  if (caller.tenantId !== null && 'service' in access) throw new Failure('forbidden', 'this call is for accounts that manage tenants');
  if (caller.tenantId !== null && 'unrestricted' in access && isRestricted(caller)) {
    throw new Failure('forbidden', 'all configurations depend on this object; clients that are restricted to some must not write it');
  }
}

/** Reads the bearer token (RFC 6750 section 2.1). Only event streams accept it in the query. */
function tokenOf(access: Access, request: Request): string | undefined {
  const [scheme, token] = (request.headers.authorization ?? '').split(' ', 2);
  if (scheme?.toLowerCase() === 'bearer' && token !== undefined && token !== '') return token;
  const queryToken = typeof access === 'object' && 'stream' in access ? request.query['token'] : undefined;
  return typeof queryToken === 'string' && queryToken !== '' ? queryToken : undefined;
}

/** Returns the roles of which a caller needs at least one. */
export function rolesOf(access: Access): readonly Role[] {
  if (typeof access === 'string') return [];
  if ('anyOf' in access) return access.anyOf;
  if ('service' in access) return access.service;
  return 'either' in access ? access.either : access.stream;
}
