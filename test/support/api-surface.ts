import { PAGE_TYPE } from '../../adapters/http/pages/page.ts';
import type { Route, Surface } from '../../adapters/http/route.ts';
import type { RawAnswer } from './raw-request.ts';

/** Stack traces and internal names that belong in a log, not in a response. */
const INTERNAL_DETAILS = /\bat .+:\d+:\d+|node_modules|file:\/\/|MikroORM|SqliteError|DriverException|\bsqlite_|\bpg_/;

/**
 * Checks the rules for every response, also to an invalid request.
 * @param isRouteKnown whether the path certainly belongs to the route, so that errors have the format of its surface.
 * @returns the violated rule, or undefined.
 */
export function findResponseProblem(
  answer: RawAnswer,
  route: Route,
  {
    isRouteKnown,
    secrets,
    isForBrowser = false,
  }: {
    readonly isRouteKnown: boolean;
    readonly secrets: readonly string[];
    /** True for a request of a browser, which gets errors as a page. */
    readonly isForBrowser?: boolean;
  },
): string | undefined {
  try {
    requireGeneralRules(answer, route, isRouteKnown, isForBrowser);
    for (const secret of secrets) require(!answer.text.includes(secret), 'tells no secret');
    return undefined;
  } catch (error) {
    return `${answer.status} ${answer.text.slice(0, 300)}: ${error instanceof Error ? error.message : error}`;
  }
}

/** An assertion library would take longer than the service for thousands of responses. */
function require(condition: boolean, requirement: string): void {
  if (!condition) throw new Error(`violated: it ${requirement}`);
}

function requireGeneralRules(answer: RawAnswer, route: Route, isRouteKnown: boolean, isForBrowser: boolean): void {
  const { status, headers, text } = answer;
  require(status < 500 || Object.hasOwn(route.responses, status), 'is no fault of the service');
  require(typeof headers['x-request-id'] === 'string', 'has an id');
  require(headers['x-powered-by'] === undefined, 'does not name its software');
  const isBrowserPage = isForBrowser && headers['content-type'] === PAGE_TYPE;
  if (!/^\/(docs|console)/.test(route.path) && route.surface !== 'page' && !isBrowserPage) {
    require(!String(headers['content-type'] ?? '').includes('html'), 'is no page by its type');
    require(!/<html|<!doctype|<pre>/i.test(text), 'is no page');
  }
  if (status < 400) return;
  require(!INTERNAL_DETAILS.test(text), 'tells no inner words');
  const isPage = headers['content-type'] === PAGE_TYPE;
  const surface = isForBrowser && isPage ? 'page' : route.negotiatesErrorFormat && !isPage ? 'oauth' : route.surface;
  requireErrorFormat(answer, isRouteKnown ? surface : undefined);
}

const PROBLEM_PROPERTIES = ['type', 'title', 'status', 'detail', 'code', 'requestId'];

function requireErrorFormat({ status, headers, text }: RawAnswer, surface: Surface | undefined): void {
  const type = headers['content-type'];
  if (surface === 'page' || (surface === undefined && type === PAGE_TYPE)) {
    // A page contains one sentence for the user, no cause and no script.
    require(type === PAGE_TYPE, 'is a page');
    require(String(headers['content-security-policy'] ?? '').includes("default-src 'none'"), 'lets the page load nothing');
    require(!/<script|javascript:/i.test(text), 'is a page without scripts');
    return;
  }
  const body = JSON.parse(text);
  if (surface === 'admin') require(type === 'application/problem+json', 'is a problem');
  if (surface === 'oauth' || surface === 'vci' || surface === 'vp') require(type === 'application/json', 'is an OAuth error');
  if (type === 'application/problem+json') {
    for (const property of PROBLEM_PROPERTIES) require(Object.hasOwn(body, property), `has ${property}`);
    require(body.status === status && body.requestId === headers['x-request-id'], 'says its status and id');
    return;
  }
  require(type === 'application/json', 'is JSON');
  // RFC 6749 section 5.2
  const { error } = body;
  const description = body.error_description ?? '';
  require(typeof error === 'string' && /^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/.test(error), 'names an error');
  require(typeof description === 'string' && /^[\x20-\x21\x23-\x5b\x5d-\x7e]*$/.test(description), 'describes it in ASCII');
}
