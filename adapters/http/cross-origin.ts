import type { NextFunction, Request, RequestHandler, Response } from 'express';
import type { Route } from './route.ts';

/** What wallets send beside their body (RFC 9449, attestation-based client authentication). */
const SENT = 'Authorization, Content-Type, DPoP, OAuth-Client-Attestation, OAuth-Client-Attestation-PoP';
/** What they read of an answer beside its body. */
const SHOWN = 'DPoP-Nonce, OAuth-Client-Attestation-Challenge, Retry-After, WWW-Authenticate, X-Request-Id';

/**
 * Whether scripts of pages of any origin may call a route (Fetch standard section 3.2, CORS protocol): what wallets call,
 * since wallets may be pages, and what is published. Nothing of that rests on cookies, so no browser lends a page what it
 * has not got itself. Never what administrators call, nor the pages that a person is sent to.
 */
export function isForAnyOrigin({ surface, path }: Route): boolean {
  return surface !== 'admin' && surface !== 'page' && !path.startsWith('/oauth2/');
}

export function allowOrigin(_request: Request, response: Response, next: NextFunction): void {
  response.setHeader('Access-Control-Allow-Origin', '*');
  response.setHeader('Access-Control-Expose-Headers', SHOWN);
  next();
}

/** Answers what a browser asks before a script may send more than a plain form to these routes of one address. */
export function preflight(routes: readonly Route[]): readonly RequestHandler[] {
  const methods = [...new Set(routes.map(({ method }) => method.toUpperCase()))].join(', ');
  const answer: RequestHandler = (_request, response) => {
    response.setHeader('Access-Control-Allow-Methods', methods);
    response.setHeader('Access-Control-Allow-Headers', SENT);
    response.setHeader('Access-Control-Max-Age', '600');
    response.statusCode = 204;
    response.end();
  };
  return [allowOrigin, answer];
}
