import type { components, paths } from './api.d.ts';

/** The schemas of the API by name: `Schemas['Session']`. */
export type Schemas = components['schemas'];

export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

/** Paths with an operation for a method. */
export type PathOf<M extends Method> = {
  [P in keyof paths]: paths[P] extends { [K in M]: object } ? P : never;
}[keyof paths];

export type Operation<M extends Method, P extends PathOf<M>> = paths[P][M];

type Parameters<Op> = Op extends { parameters: infer All } ? All : never;
type RequestBody<Op> = Op extends { requestBody?: infer Body } ? NonNullable<Body> : never;
type Json<Content> = Content extends { content: { 'application/json': infer Value } } ? Value : never;
type BodyOption<Op> = [RequestBody<Op>] extends [never]
  ? { readonly body?: never }
  : Op extends { requestBody: object }
    ? { readonly body: Json<RequestBody<Op>> }
    : { readonly body?: Json<RequestBody<Op>> };

/** Options of every call. */
export type CallOptions = {
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds until the call is given up, if not those of the client. */
  readonly timeoutMs?: number | undefined;
};

/** `path`, `query`, `header` and `body` of an operation, required if the operation requires them. */
export type Options<Op> = CallOptions & Pick<Parameters<Op>, Extract<keyof Parameters<Op>, 'path' | 'query' | 'header'>> & BodyOption<Op>;

/** The options are optional if nothing in them is required. */
export type Arguments<Op> = object extends Options<Op> ? [options?: Options<Op>] : [options: Options<Op>];

type Body<Response> = Response extends { content: infer Content }
  ? Content extends { 'application/json': infer Value }
    ? Value
    : string
  : undefined;

/** The successful response of an operation. */
export type Answer<Op> = Op extends { responses: infer All } ? { [S in keyof All]: Body<All[S]> }[keyof All] : never;

/** Paths of paginated lists. */
export type ListPath = {
  [P in PathOf<'get'>]: Answer<Operation<'get', P>> extends readonly unknown[] ? P : never;
}[PathOf<'get'>];

export type Entry<P extends ListPath> = Answer<Operation<'get', P>> extends readonly (infer One)[] ? One : never;
