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
export function findResponseProblem(
  answer: RawAnswer,
  route: Route,
  {
    isRouteKnown: plain,
    secrets,
    isForBrowser: isForPerson = false,
  }: {
    readonly isRouteKnown: boolean;
    readonly secrets: readonly string[];
    /** Whether a browser asked, which is told what is wrong in a page. */
    readonly isForBrowser?: boolean;
  },
): string | undefined {
  try {
    expectDecent(answer, route, plain, isForPerson);
    for (const secret of secrets) must(!answer.text.includes(secret), 'tells no secret');
    return undefined;
  } catch (error) {
    return `${answer.status} ${answer.text.slice(0, 300)}: ${error instanceof Error ? error.message : error}`;
  }
}

/** Thousands of answers are looked at, for which a library that explains itself would take longer than the service. */
function must(holds: boolean, what: string): void {
  if (!holds) throw new Error(`does not hold: it ${what}`);
}

function expectDecent(answer: RawAnswer, route: Route, plain: boolean, isForPerson: boolean): void {
  const { status, headers, text } = answer;
  must(status < 500 || Object.hasOwn(route.responses, status), 'is no fault of the service');
  must(typeof headers['x-request-id'] === 'string', 'has an id');
  must(headers['x-powered-by'] === undefined, 'does not name its software');
  const isAsked = isForPerson && headers['content-type'] === PAGE_TYPE;
  if (!/^\/(docs|console)/.test(route.path) && route.surface !== 'page' && !isAsked) {
    must(!String(headers['content-type'] ?? '').includes('html'), 'is no page by its type');
    must(!/<html|<!doctype|<pre>/i.test(text), 'is no page');
  }
  if (status < 400) return;
  must(!INSIDES.test(text), 'tells no inner words');
  const isPage = headers['content-type'] === PAGE_TYPE;
  const surface = isForPerson && isPage ? 'page' : route.negotiatesErrorFormat && !isPage ? 'oauth' : route.surface;
  expectError(answer, plain ? surface : undefined);
}

const PROBLEM_MEMBERS = ['type', 'title', 'status', 'detail', 'code', 'requestId'];

function expectError({ status, headers, text }: RawAnswer, surface: Surface | undefined): void {
  const type = headers['content-type'];
  if (surface === 'page' || (surface === undefined && type === PAGE_TYPE)) {
    // A page names no cause but a sentence for the user, and runs nothing.
    must(type === PAGE_TYPE, 'is a page');
    must(String(headers['content-security-policy'] ?? '').includes("default-src 'none'"), 'lets the page load nothing');
    must(!/<script|javascript:/i.test(text), 'is a page without scripts');
    return;
  }
  const body = JSON.parse(text);
  if (surface === 'admin') must(type === 'application/problem+json', 'is a problem');
  if (surface === 'oauth' || surface === 'vci' || surface === 'vp') must(type === 'application/json', 'is an OAuth error');
  if (type === 'application/problem+json') {
    for (const member of PROBLEM_MEMBERS) must(Object.hasOwn(body, member), `has ${member}`);
    must(body.status === status && body.requestId === headers['x-request-id'], 'says its status and id');
    return;
  }
  must(type === 'application/json', 'is JSON');
  // RFC 6749 section 5.2
  const { error } = body;
  const description = body.error_description ?? '';
  must(typeof error === 'string' && /^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/.test(error), 'names an error');
  must(typeof description === 'string' && /^[\x20-\x21\x23-\x5b\x5d-\x7e]*$/.test(description), 'describes it in ASCII');
}
