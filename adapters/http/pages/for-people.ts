import type { Request } from 'express';
import { isBrowser } from '../negotiation.ts';
import type { Reply, Route, Surface } from '../route.ts';
import { errorPage } from './error-page.ts';
import { languagesAsked } from './languages.ts';
import { pageReply, type Reader } from './page.ts';
import { readerOf } from './reader.ts';

/** @returns who reads what a request ends with, where that is a person; undefined for a program. */
export function personAt(request: Request, surface: Surface): Reader | undefined {
  const isLookedAt = request.method === 'GET' || request.method === 'HEAD';
  const isPerson =
    surface === 'page' || (surface !== 'admin' && isLookedAt && isBrowser(request.headers.accept));
  return isPerson ? readerOf({ languages: languagesAsked(request) }) : undefined;
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
