import type { NextFunction, Request, RequestHandler, Response } from 'express';

/** What answers one method at addresses of one form, in the order in which it has its say. */
export type Answering = {
  /** In lower case, as routes name it. */
  readonly method: string;
  /** Segments with a colon in front stand for one of any name. */
  readonly path: string;
  readonly handlers: readonly RequestHandler[];
};

type Node = { readonly fixed: Map<string, Node>; any: Node | undefined; readonly here: Placed[] };
type Placed = { readonly place: number; readonly names: readonly string[]; readonly of: Answering };

const emptyNode = (): Node => ({ fixed: new Map(), any: undefined, here: [] });

/** Runs the handlers of what was found. `next` is told when all of them passed the request on, or of an error. */
export type Run = (request: Request, response: Response, next: NextFunction) => void;

/**
 * Finds what answers an address by its segments. Express would try the pattern of each route in turn, which takes longer than
 * many an answer; its handlers are run as it would run them: `next('route')` goes on to the next that fits.
 */
export function dispatcher(all: readonly Answering[]): (request: Request) => Run | undefined {
  const root = emptyNode();
  all.forEach((of, place) => {
    const segments = of.path.split('/').slice(1);
    const names = segments.filter((segment) => segment.startsWith(':')).map((segment) => segment.slice(1));
    nodeOf(root, segments).here.push({ place, names, of });
  });
  return ({ path, method }) => {
    // What the address is made of may be missing where it cannot be read.
    const segments = (path ?? '').split('/').slice(1);
    const found = matching(root, segments, methodsOf(method));
    if (found.length === 0) return undefined;
    return (request, response, next) => tryRoutes(found, 0, request, response, next);
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
    const below = node.fixed.get(segment) ?? emptyNode();
    node.fixed.set(segment, below);
    node = below;
  }
  return node;
}

/** HEAD is answered like GET where a route allows it. */
function methodsOf(method: string): readonly string[] {
  return method === 'HEAD' ? ['get', 'head'] : [method.toLowerCase()];
}

type Found = { readonly placed: Placed; readonly values: readonly string[] };

/** In the order of the routes. */
function matching(root: Node, segments: readonly string[], methods: readonly string[]): readonly Found[] {
  const found: Found[] = [];
  const visit = (node: Node, at: number, values: readonly string[]): void => {
    const segment = segments[at];
    if (segment === undefined) {
      for (const placed of node.here) if (methods.includes(placed.of.method)) found.push({ placed, values });
      return;
    }
    const fixed = node.fixed.get(segment);
    if (fixed !== undefined) visit(fixed, at + 1, values);
    if (node.any !== undefined && segment !== '') visit(node.any, at + 1, [...values, segment]);
  };
  visit(root, 0, []);
  return found.length < 2 ? found : found.sort((one, other) => one.placed.place - other.placed.place);
}

function tryRoutes(found: readonly Found[], index: number, request: Request, response: Response, next: NextFunction): void {
  const match = found[index];
  if (match === undefined) {
    next();
    return;
  }
  const { names, of } = match.placed;
  const params: Record<string, string> = Object.create(null);
  try {
    names.forEach((name, place) => {
      params[name] = decodeURIComponent(match.values[place] ?? '');
    });
  } catch (error) {
    next(error);
    return;
  }
  request.params = params;
  runHandlers(of.handlers, 0, request, response, (signal) =>
    signal === 'route' ? tryRoutes(found, index + 1, request, response, next) : next(signal),
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
