import type { IncomingHttpHeaders } from 'node:http';
import type { z } from 'zod';
import type { Caller, Listener, RememberedCaller, TenantCaller } from '../../application/caller.ts';
import type { PortsOf, Token, Tokens } from '../../application/needs.ts';
import type { Role } from '../../domain/clients/role.ts';
import type { EditedKind } from '../../domain/resources.ts';
import type { Failure } from '../../domain/shared/failure.ts';
import type { RateLimitGroup } from './limits/rate-limits.ts';

/** Whose error bodies a route speaks: problem+json for administrators, the protocol's own for wallets, a page for users. */
export type Surface = 'admin' | 'oauth' | 'vci' | 'vp' | 'document' | 'page';

/**
 * Who may call. Roles need an access token of a tenant's client; `service` one of an account without tenant;
 * `either` takes both. `stream` is like roles, with the token also in the query. `wallet` routes carry a wallet's
 * token, which the use case checks together with its proof; `public` ones carry none. `remembered` spares a look at
 * the database; the type of the caller then makes the use case confirm it. `unrestricted` refuses clients that are restricted to some configurations: for
 * writes that touch what all of them rest on, such as keys and trust lists.
 */
export type Access =
  | { readonly anyOf: readonly Role[]; readonly unrestricted?: true; readonly remembered?: never }
  | { readonly anyOf: readonly Role[]; readonly remembered: true }
  | { readonly service: readonly Role[] }
  | { readonly either: readonly Role[] }
  | { readonly stream: readonly Role[] }
  | 'wallet'
  | 'public';

export type CallerOf<A extends Access> = A extends { remembered: true }
  ? RememberedCaller
  : A extends { stream: unknown }
    ? Listener
    : A extends { anyOf: unknown }
      ? TenantCaller
      : A extends { service: unknown } | { either: unknown }
        ? Caller
        : undefined;

/**
 * How a request body is read. `json` also tolerates nothing but one object without repeated members. `unread` leaves it
 * to the use case, for messages that may be encrypted; the schema then only documents.
 */
export type BodyKind = 'json' | 'form' | 'json-or-form' | 'unread';

export type RawRequest = {
  readonly headers: IncomingHttpHeaders;
  /** Every header field as it came, since Node joins repeated ones (RFC 9449 section 4.3 wants to know). */
  readonly rawHeaders: readonly string[];
  readonly requestId: string;
  /** That the reader of a page wants, best first. */
  readonly languages: readonly string[];
  /** The body as it came; empty for a route without one. */
  readonly bytes: Buffer;
  /** Resolves when the peer went away. */
  readonly closed: AbortSignal;
};

type ReplyHeaders = Readonly<Record<string, string>>;

export type Reply =
  | {
      readonly status: number;
      readonly json: unknown;
      readonly headers?: ReplyHeaders;
      /** The stored thing that the answer shows. */
      readonly shown?: object;
    }
  | {
      readonly status: number;
      readonly text: string | Buffer;
      readonly contentType: string;
      /** Of the text as it stands here, in quotes: tells it from every other. */
      readonly etag?: string;
      readonly headers?: ReplyHeaders;
    }
  | { readonly status: number; readonly empty: true; readonly headers?: ReplyHeaders }
  /** Server-sent events: each item is one `data:` line or a comment. */
  | { readonly status: 200; readonly events: AsyncIterable<StreamItem>; readonly headers?: ReplyHeaders };

export type StreamItem = { readonly id?: string; readonly data: unknown } | 'heartbeat';

export function reply(status: number, json: unknown, headers?: ReplyHeaders): Reply {
  return headers === undefined ? { status, json } : { status, json, headers };
}

/** An answer that shows a stored thing of the kind that its route `edits`; it carries the `ETag` of that. */
export function show(status: number, json: unknown, shown: object): Reply {
  return { status, json, shown };
}

export type Input<A extends Access, P, Q, B> = {
  readonly caller: CallerOf<A>;
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  readonly request: RawRequest;
};

/** An answer that is no JSON. */
export type OtherForm = {
  readonly description: string;
  readonly contentType: string | readonly string[];
  /** What it carries, such as each event of a stream; text unless stated. */
  readonly schema?: z.ZodType;
  readonly headers?: Readonly<Record<string, string>>;
};

export type RouteDefinition<A extends Access, P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType> = {
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete';
  /** With `:name` parameters. Tenant paths of wallets begin with `/:tenant`. */
  readonly path: string;
  /** Name of the operation in the API document. Generated clients have a method of this name. */
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly tag: string;
  readonly surface: Surface;
  readonly access: A;
  readonly params?: P;
  readonly query?: Q;
  readonly body?: B;
  /** Whose members the body may have, where `body` leaves that open. */
  readonly members?: z.ZodType;
  /** What the API document says where a use case reads for itself: in place of `query` and `body`, and of headers. */
  readonly described?: {
    readonly query?: z.ZodObject;
    readonly json?: z.ZodType;
    readonly form?: z.ZodType;
    readonly headers?: z.ZodObject;
  };
  readonly bodyKind?: BodyKind;
  /** Bytes; 64 KiB unless stated. */
  readonly bodyLimit?: number;
  /** Calls per minute are bounded: of one address, of one client, or both. */
  readonly rateLimit?: {
    readonly group: RateLimitGroup;
    readonly perAddress?: boolean;
    /** Of the caller's client; where there is no caller, of the client that the request names. */
    readonly perClient?: boolean | ((input: Input<A, z.output<P>, z.output<Q>, z.output<B>>) => string | undefined);
  };
  /** Answers may also be a JWT, as with `bodyKind` `unread`. */
  readonly asJwt?: boolean;
  /**
   * Is told of a body that could not be read: too large, of another media type, not a form or not JSON. The caller gets the error.
   * @param params as they stand in the address. @param requestId of the HTTP request.
   */
  readonly onUnreadBody?: (params: Readonly<Record<string, string | undefined>>, error: Failure, requestId: string) => Promise<void>;
  /** Documented answers: a schema, a sentence when there is no JSON body, or what comes in another form. */
  readonly responses: Readonly<Record<number, z.ZodType | string | OtherForm>>;
  /**
   * The single thing that this route shows or writes: what shows it carries its `ETag`. With `id`, the id of that thing
   * within its tenant, `If-Match` is taken.
   */
  readonly edits?: {
    readonly kind: EditedKind;
    readonly id?: (input: Pick<Input<A, z.output<P>, z.output<Q>, z.output<B>>, 'params' | 'body'>) => string;
  };
  /** Of a page: what fails is told as JSON of OAuth, unless the reader would rather have HTML. */
  readonly isToldByAccept?: true;
  /** The page that a browser gets when a person opens the address; programs get what `handle` returns. */
  readonly browserPage?: (request: Pick<RawRequest, 'languages'>) => Reply;
  /** Takes an `Idempotency-Key`. */
  readonly isRepeatable?: true;
  /** Shows that thing as it is: members that answers have and nobody writes may be sent back as they are there. */
  readonly shows?: (input: Pick<Input<A, z.output<P>, z.output<Q>, z.output<B>>, 'caller' | 'params'>) => Promise<Reply>;
  /**
   * Example values of parameters of path and query, by name; executed by the tests as `example` is. Parameters that mean the same in
   * every route have theirs in `openapi/openapi-examples.ts`.
   */
  readonly exampleParameters?: Readonly<Record<string, unknown>>;
  /** An example request body, executed by the tests; what stands in angle brackets was answered by a call before. */
  readonly example?: unknown;
  handle(input: Input<A, z.output<P>, z.output<Q>, z.output<B>>): Promise<Reply> | Reply;
};

// biome-ignore lint/suspicious/noExplicitAny: a table of routes holds handlers of every input type
export type Route = RouteDefinition<Access, z.ZodType, z.ZodType, any>;

/** One route as a value: handler, validation, authorization and documentation in one place. */
export function route<
  A extends Access,
  P extends z.ZodType = z.ZodType<undefined>,
  Q extends z.ZodType = z.ZodType<undefined>,
  B extends z.ZodType = z.ZodType<undefined>,
>(definition: RouteDefinition<A, P, Q, B>): Route {
  return definition as unknown as Route;
}

/** Whether an address hands something out to wallets. */
export function isForWallets({ method, surface }: Route): boolean {
  return method === 'get' && (surface === 'vci' || surface === 'vp');
}

/** Whether a person who opens the address in a browser reads a page, at least where something is wrong. */
export function hasBrowserPages({ browserPage, method, surface }: Route): boolean {
  return browserPage !== undefined || surface === 'page' || (surface !== 'admin' && method === 'get');
}

export const DEFAULT_BODY_LIMIT = 64 * 1024;

/** @returns what a token stands for. */
export type Find = <T>(token: Token<T>) => T;

/** Routes that belong together; made once the use cases that they lead to are there. */
export type Family = (find: Find) => readonly Route[];

export function family<T extends Tokens>(useCases: T, make: (useCases: PortsOf<T>) => readonly Route[]): Family {
  return (find) => {
    const found = Object.entries(useCases).map(([name, token]) => [name, find(token)]);
    return make(Object.fromEntries(found) as PortsOf<T>);
  };
}

/** @returns the routes of all, in this order. */
export function families(...all: readonly Family[]): Family {
  return (find) => all.flatMap((make) => make(find));
}
