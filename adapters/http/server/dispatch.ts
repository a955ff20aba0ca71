import type { NextFunction, Request, RequestHandler, Response } from 'express';

/** Handlers for one method at addresses of one pattern, in the order of their precedence. */
export type Endpoint = {
  /** Lower case, as in routes. */
  readonly method: string;
  /** Segments that begin with a colon match any name. */
  readonly path: string;
  readonly handlers: readonly RequestHandler[];
};

type Node = { readonly fixed: Map<string, Node>; any: Node | undefined; readonly endpoints: RankedEndpoint[] };
type RankedEndpoint = { readonly rank: number; readonly names: readonly string[]; readonly endpoint: Endpoint };

const emptyNode = (): Node => ({ fixed: new Map(), any: undefined, endpoints: [] });

/** Runs the handlers of the matching endpoints. `next` is called when all of them passed the request on, or with an error. */
export type Run = (request: Request, response: Response, next: NextFunction) => void;

/**
 * Finds the endpoint of an address by its segments. Express would try the pattern of each route in turn, which takes longer than many a
 * response; the handlers are run like express does: `next('route')` continues with the next matching endpoint.
 */
export function dispatcher(endpoints: readonly Endpoint[]): (request: Request) => Run | undefined {
  const root = emptyNode();
  endpoints.forEach((of, place) => {
    const segments = of.path.split('/').slice(1);
    const names = segments.filter((segment) => segment.startsWith(':')).map((segment) => segment.slice(1));
    nodeOf(root, segments).endpoints.push({ rank: place, names, endpoint: of });
  });
  return ({ path, method }) => {
    // The path may be missing if the address cannot be parsed.
    const segments = (path ?? '').split('/').slice(1);
    const matches = findMatches(root, segments, methodsOf(method));
    if (matches.length === 0) return undefined;
    return (request, response, next) => tryRoutes(matches, 0, request, response, next);
  };
}

function nodeOf(root: Node, segments: readonly string[]): Node {
  let node = root;
  for (const segment of segments) {
    if (segment.lastIndexOf(':') > 0) throw new Error(`A parameter is a whole segment: ${segment}`);
    if (segment.startsWith(':')) {
      node.any ??= emptyNode();
      node = node.any;
      continue;
    }
    const child = node.fixed.get(segment) ?? emptyNode();
    node.fixed.set(segment, child);
    node = child;
  }
  return node;
}

/** HEAD is answered like GET if the route allows it. */
function methodsOf(method: string): readonly string[] {
  return method === 'HEAD' ? ['get', 'head'] : [method.toLowerCase()];
}

type Match = { readonly placed: RankedEndpoint; readonly values: readonly string[] };

/** Returns the matches in the order of the routes. */
function findMatches(root: Node, segments: readonly string[], methods: readonly string[]): readonly Match[] {
  const matches: Match[] = [];
  const visit = (node: Node, depth: number, values: readonly string[]): void => {
    const segment = segments[depth];
    if (segment === undefined) {
      for (const endpoint of node.endpoints) if (methods.includes(endpoint.endpoint.method)) matches.push({ placed: endpoint, values });
      return;
    }
    const fixed = node.fixed.get(segment);
    if (fixed !== undefined) visit(fixed, depth + 1, values);
    if (node.any !== undefined && segment !== '') visit(node.any, depth + 1, [...values, segment]);
  };
  visit(root, 0, []);
  return matches.length < 2 ? matches : matches.sort((a, b) => a.placed.rank - b.placed.rank);
}

function tryRoutes(matches: readonly Match[], index: number, request: Request, response: Response, next: NextFunction): void {
  const match = matches[index];
  if (match === undefined) {
    next();
    return;
  }
  const { names, endpoint: of } = match.placed;
  const params: Record<string, string> = Object.create(null);
  try {
    names.forEach((name, position) => {
      params[name] = decodeURIComponent(match.values[position] ?? '');
    });
  } catch (error) {
    next(error);
    return;
  }
  request.params = params;
  runHandlers(of.handlers, 0, request, response, (signal) =>
    signal === 'route' ? tryRoutes(matches, index + 1, request, response, next) : next(signal),
  );
}

function runHandlers(
  handlers: readonly RequestHandler[],
  index: number,
  request: Request,
  response: Response,
  done: (signal?: unknown) => void,
): void {
  const handler = handlers[index];
  if (handler === undefined) {
    done();
    return;
  }
  try {
    const running: unknown = handler(request, response, (signal?: unknown) => {
      if (signal === undefined) runHandlers(handlers, index + 1, request, response, done);
      else done(signal);
    });
    if (running instanceof Promise) running.catch(done);
  } catch (error) {
    done(error);
  }
}
