import type { Request } from 'express';
import type { TenantConfigurations } from '../../../application/tenant-configurations.ts';
import { tenantLook } from '../../../application/tenants/tenant-look.ts';
import { defined } from '../../../domain/shared/defined.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { TenantLook } from '../../../domain/tenants/look.ts';
import { SERVING } from '../../../domain/tenants/tenant.ts';
import { isNavigation } from '../negotiation.ts';
import type { Reply, Route, Surface } from '../route.ts';
import { errorPage } from './error-page.ts';
import { languagesAsked } from './languages.ts';
import { type Person, pageReply } from './page.ts';
import { readerOf } from './reader.ts';

/** @returns who reads what a request ends with, where that is a person; undefined for a program. */
export function personAt(request: Request, surface: Surface, look?: TenantLook): Person | undefined {
  const isLookedAt = request.method === 'GET' || request.method === 'HEAD';
  const isPerson = surface === 'page' || (surface !== 'admin' && isLookedAt && isNavigation(request.headers));
  if (!isPerson) return undefined;
  return { ...readerOf({ languages: languagesAsked(request) }, look), ...defined({ look }) };
}

/**
 * The look of the tenant at whose address a person is refused something. Only of one that this process remembers and that serves: an error
 * of a stranger costs no look at the database for a tenant that nobody has, and none while the database is away.
 */
export async function lookOfRefusal(
  error: unknown,
  { surface }: Route,
  request: Request,
  tenants: Pick<TenantConfigurations, 'latest'>,
): Promise<TenantLook | undefined> {
  const { tenant } = request.params ?? {};
  const isAsked = typeof tenant === 'string' && personAt(request, surface) !== undefined;
  if (!isAsked || !(error instanceof Failure) || error.code === 'unavailable') return undefined;
  const configured = tenants.latest(tenant as TenantId);
  if (configured?.state.status !== SERVING) return undefined;
  // A page without a look is better than none.
  return tenantLook(configured).catch(() => undefined);
}

/** Whether an address hands something out to wallets. */
export function isForWallets({ method, surface }: Route): boolean {
  return method === 'get' && (surface === 'vci' || surface === 'vp');
}

/**
 * The page for a person who opens in a browser what is for a wallet: an offer or a request, which is not handed out then, nor
 * counted as fetched.
 */
export function insteadOfWallet(route: Route, request: Request, requestId: string): Reply | undefined {
  if (!isForWallets(route)) return undefined;
  const reader = personAt(request, route.surface);
  const failed = { status: 406, detail: 'This address is for wallets.', requestId };
  return reader && pageReply(errorPage(failed, reader), {}, failed.status);
}

/** What a person sees of a refusal that a route puts in words of its own. */
export function refusalFor(reply: Reply, { surface }: Route, request: Request, requestId: string): Reply {
  if (reply.status < 400 || !('json' in reply)) return reply;
  const reader = personAt(request, surface);
  if (reader === undefined) return reply;
  const { error } = reply.json as { readonly error?: unknown };
  const failed = { status: reply.status, detail: String(error ?? ''), requestId };
  const headers = { 'Cache-Control': 'no-store', ...reply.headers };
  return pageReply(errorPage(failed, reader), headers, reply.status);
}
