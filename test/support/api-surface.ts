import { expect } from 'chai';
import { PAGE_TYPE } from '../../adapters/http/pages/page.ts';
import type { Route, Surface } from '../../adapters/http/route.ts';
import type { RawAnswer } from './raw-request.ts';

/** Traces and inner words that belong in a log. */
const INSIDES = /\bat .+:\d+:\d+|node_modules|file:\/\/|MikroORM|SqliteError|DriverException|\bsqlite_|\bpg_/;

/**
 * What must hold for every answer, however bad the request was.
 * @param plain whether the address still belongs to the route for sure, so that errors are of its surface.
 * @returns what does not hold, or undefined.
 */
export function faultOf(
  answer: RawAnswer,
  route: Route,
  { plain, secrets }: { readonly plain: boolean; readonly secrets: readonly string[] },
): string | undefined {
  try {
    expectDecent(answer, route, plain);
    for (const secret of secrets) expect(answer.text.includes(secret), 'tells a secret').to.equal(false);
    return undefined;
  } catch (error) {
    return `${answer.status} ${answer.text.slice(0, 300)}: ${error instanceof Error ? error.message : error}`;
  }
}

function expectDecent(answer: RawAnswer, route: Route, plain: boolean): void {
  const { status, headers, text } = answer;
  if (!Object.hasOwn(route.responses, status)) expect(status).to.be.lessThan(500);
  expect(headers['x-request-id']).to.be.a('string');
  expect(headers['x-powered-by']).to.equal(undefined);
  if (!route.path.startsWith('/docs') && route.surface !== 'page') {
    expect(String(headers['content-type'] ?? '')).not.to.include('html');
    expect(text).not.to.match(/<html|<!doctype|<pre>/i);
  }
  if (status < 400) return;
  expect(text).not.to.match(INSIDES);
  expectError(answer, plain ? route.surface : undefined);
}

function expectError({ status, headers, text }: RawAnswer, surface: Surface | undefined): void {
  const type = headers['content-type'];
  if (surface === 'page' || (surface === undefined && type === PAGE_TYPE)) {
    // A page names no cause but a sentence for the user, and runs nothing.
    expect(type).to.equal(PAGE_TYPE);
    expect(headers['content-security-policy']).to.include("default-src 'none'");
    expect(text).not.to.match(/<script|javascript:/i);
    return;
  }
  const body = JSON.parse(text);
  if (surface === 'admin') expect(type).to.equal('application/problem+json');
  if (surface === 'oauth' || surface === 'vci' || surface === 'vp') expect(type).to.equal('application/json');
  if (type === 'application/problem+json') {
    expect(body).to.include.all.keys('type', 'title', 'status', 'detail', 'code', 'requestId');
    expect([body.status, body.requestId]).to.deep.equal([status, headers['x-request-id']]);
    return;
  }
  expect(type).to.equal('application/json');
  // RFC 6749 section 5.2
  expect(body.error).to.match(/^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/);
  expect(body.error_description ?? '').to.match(/^[\x20-\x21\x23-\x5b\x5d-\x7e]*$/);
}
