import { z } from 'zod';
import type { Token } from '../../application/needs.ts';
import { ServiceSettings } from '../../application/ports/settings.ts';
import { type EditedKind, resourceOf } from '../../domain/resources.ts';
import { type Finding, type Profile, type ReportFindings, warningsOf } from '../../domain/shared/finding.ts';
import { hideSecrets } from '../../domain/shared/secrets.ts';
import { ListQuery, pageOf } from './output/page-of.ts';
import { profileOf, warningsFor, withWarnings } from './output/warnings.ts';
import { type Access, type CallerOf, type Family, type Find, type Reply, type Route, reply, show } from './route.ts';
import { DeletedView } from './shapes.ts';

type UseCase<Given extends readonly unknown[], Result> = Token<{ readonly execute: (...given: Given) => Promise<Result> }>;

/** Key of a resource within its tenant; empty for a singleton. */
type Key<Params> = Params extends z.ZodObject ? readonly [z.output<Params>[keyof z.output<Params>]] : readonly [];

type Description<A extends Access, Resource, Params> = {
  readonly kind: EditedKind;
  readonly tag: string;
  readonly path: `/${string}`;
  /** Path parameter with the key, as the only property; absent for a singleton. */
  readonly params?: Params;
  /** Example of `params` for the API document, if there is no common one for its name. */
  readonly exampleId?: string;
  readonly access: A;
  /** Properties of the routes that write, where they differ from those of the routes that read. */
  readonly writeOverrides?: Pick<Partial<Route>, 'access' | 'bodyLimit'>;
  readonly view: z.ZodType;
  readonly get: UseCase<readonly [CallerOf<A>, ...Key<Params>], Resource>;
  /** Converts a resource whose secrets are removed. */
  toView(resource: Resource, context: { readonly caller: CallerOf<A>; readonly settings: ServiceSettings }): unknown;
  /** Sort key of lists; the `id` by default. */
  key?(resource: Resource): string;
  /** Part of the resource from which its `ETag` is computed; all of it by default. */
  stored?(resource: Resource): object;
  /** Profile for the warnings after a write. Set only for tenants; other kinds use the profile of the caller's tenant. */
  profile?(resource: Resource): Profile | null;
  /** Problems that follow from the resource but are not part of it. */
  findings?(resource: Resource, caller: CallerOf<A>): readonly Finding[] | Promise<readonly Finding[]>;
};

/** Documentation that differs between routes. */
type RouteTexts = Pick<Route, 'operationId' | 'summary'> & Pick<Partial<Route>, 'description' | 'responses'>;
type WriteRouteTexts<Body extends z.ZodType> = RouteTexts &
  Pick<Partial<Route>, 'members' | 'bodyLimit'> & { readonly body: Body; readonly example: unknown };

/** `reporting`: the use case reports problems that do not follow from the stored resource. */
type Writer<A extends Access, Resource, Given extends readonly unknown[]> =
  | UseCase<readonly [CallerOf<A>, ...Given], Resource>
  | { readonly reporting: UseCase<readonly [CallerOf<A>, ...Given, ReportFindings], Resource> };
type Input = { readonly caller: unknown; readonly params: unknown; readonly body?: unknown };
type Handler = (input: Input) => Promise<Reply>;

/** Returns a builder: each method returns the route of one operation on this kind of resource. */
export function resourceRoutes<A extends Access, Resource extends object, Params extends z.ZodObject | undefined = undefined>(
  description: Description<A, Resource, Params>,
): ResourceRoutes<A, Resource, Params> {
  return new ResourceRoutes(description);
}

class ResourceRoutes<A extends Access, Resource extends object, Params extends z.ZodObject | undefined> {
  readonly #description: Description<A, Resource, Params>;
  readonly #address: ResourceAddress<Key<Params>>;
  readonly #answers: ResourceAnswers<A, Resource>;

  constructor(description: Description<A, Resource, Params>) {
    this.#description = description;
    this.#address = new ResourceAddress(description);
    this.#answers = new ResourceAnswers(description);
  }

  list({ by, ...texts }: RouteTexts & { readonly by: UseCase<readonly [CallerOf<A>], readonly Resource[]> }): Family {
    const { path, view, key = (resource: Resource) => String((resource as { readonly id?: unknown }).id) } = this.#description;
    return (find) => {
      const [useCase, settings] = [find(by), find(ServiceSettings)];
      const handle: Route['handle'] = async ({ caller, query }) => {
        const context = { caller: caller as CallerOf<A>, settings };
        return pageOf({
          all: await useCase.execute(context.caller),
          query: query as ListQuery,
          address: settings.publicUrl + path,
          keyOf: key,
          toView: (resource) => this.#answers.toView(resource, context),
        });
      };
      return [{ ...this.#address.collection, ...texts, method: 'get', query: ListQuery, responses: { 200: z.array(view) }, handle }];
    };
  }

  get(texts: RouteTexts): Family {
    const { kind, view } = this.#description;
    const responses = { 200: view, ...texts.responses };
    return (find) => [{ ...this.#address.single, ...texts, method: 'get', edits: { kind }, responses, handle: this.#show(find) }];
  }

  /** @param replaces true if an existing resource is replaced: the one with the id in the body, if there are many. */
  create<Body extends z.ZodType>({
    by,
    replaces = false,
    ...texts
  }: WriteRouteTexts<Body> & { readonly by: Writer<A, Resource, [z.output<Body>]>; readonly replaces?: boolean }): Family {
    const { kind, writeOverrides } = this.#description;
    const { collection, hasMany } = this.#address;
    const id = ({ body }: { readonly body: { readonly id: string } }) => (hasMany ? body.id : 'default');
    const edits = replaces ? { kind, id } : { kind };
    const responses = this.#answers.writeResponses(201, texts.responses);
    return (find) => {
      const execute = executorOf<A, Resource, [z.output<Body>]>(find, by);
      const handle = this.#answers.writeHandler(find, 201, ({ caller, body }, report) =>
        execute([caller as CallerOf<A>, body as z.output<Body>], report),
      );
      return [{ ...collection, ...writeOverrides, ...texts, method: 'post', edits, responses, handle }];
    };
  }

  replace<Body extends z.ZodType>(texts: WriteByKeyTexts<A, Resource, Params, Body>): Family {
    return this.#write('put', texts);
  }

  update<Body extends z.ZodType>(texts: WriteByKeyTexts<A, Resource, Params, Body>): Family {
    return this.#write('patch', texts);
  }

  delete({ by, ...texts }: RouteTexts & { readonly by: UseCase<readonly [CallerOf<A>, ...Key<Params>], unknown> }): Family {
    const { single, edits, keyOf, idOf } = this.#address;
    const responses = { 200: DeletedView, ...texts.responses };
    return (find) => {
      const useCase = find(by);
      const handle: Handler = async ({ caller, params }) => {
        await useCase.execute(caller as CallerOf<A>, ...keyOf(params));
        return reply(200, { id: idOf(params) });
      };
      return [{ ...single, ...this.#description.writeOverrides, ...texts, method: 'delete', edits, responses, handle }];
    };
  }

  #show(find: Find): Handler {
    const useCase = find(this.#description.get);
    return this.#answers.readHandler(find, ({ caller, params }) => useCase.execute(caller as CallerOf<A>, ...this.#address.keyOf(params)));
  }

  #write<Body extends z.ZodType>(method: 'put' | 'patch', { by, ...texts }: WriteByKeyTexts<A, Resource, Params, Body>): Family {
    const { single, edits, keyOf } = this.#address;
    const responses = this.#answers.writeResponses(200, texts.responses);
    return (find) => {
      const execute = executorOf<A, Resource, [...Key<Params>, z.output<Body>]>(find, by);
      const handle = this.#answers.writeHandler(find, 200, ({ caller, params, body }, report) =>
        execute([caller as CallerOf<A>, ...keyOf(params), body as z.output<Body>], report),
      );
      return [{ ...single, ...this.#description.writeOverrides, ...texts, method, edits, shows: this.#show(find), responses, handle }];
    };
  }
}

type WriteByKeyTexts<A extends Access, Resource, Params, Body extends z.ZodType> = WriteRouteTexts<Body> & {
  readonly by: Writer<A, Resource, [...Key<Params>, z.output<Body>]>;
};

/** Runs a use case that writes, with or without reported problems. */
function executorOf<A extends Access, Resource, Given extends readonly unknown[]>(find: Find, by: Writer<A, Resource, Given>) {
  if ('reporting' in by) {
    const useCase = find(by.reporting);
    return (values: readonly [CallerOf<A>, ...Given], report: ReportFindings) => useCase.execute(...values, report);
  }
  const useCase = find(by);
  return (values: readonly [CallerOf<A>, ...Given]) => useCase.execute(...values);
}

class ResourceAddress<K extends readonly unknown[]> {
  readonly collection: Pick<Route, 'tag' | 'surface' | 'access' | 'path'>;
  readonly single: Pick<Route, 'tag' | 'surface' | 'access' | 'path'> & Pick<Partial<Route>, 'params' | 'exampleParameters'>;
  /** True if a tenant may have more than one. */
  readonly hasMany: boolean;
  readonly keyOf: (params: unknown) => K;
  readonly idOf = (params: unknown): string => String(this.keyOf(params)[0] ?? 'default');
  readonly edits: NonNullable<Route['edits']>;

  constructor({ kind, tag, path, params, access, exampleId }: AddressDescription) {
    const [name] = Object.keys(params?.shape ?? {});
    this.collection = { tag, surface: 'admin', access, path };
    const example = exampleId === undefined ? {} : { exampleParameters: { [String(name)]: exampleId } };
    this.single = params === undefined ? this.collection : { ...this.collection, ...example, path: `${path}/:${name}`, params };
    this.hasMany = name !== undefined;
    this.keyOf = (pathParameters) =>
      (name === undefined ? [] : [(pathParameters as Readonly<Record<string, unknown>>)[name]]) as unknown as K;
    this.edits = { kind, id: ({ params }) => this.idOf(params) };
  }
}

type AddressDescription = Pick<
  Description<Access, object, z.ZodObject | undefined>,
  'kind' | 'tag' | 'path' | 'params' | 'access' | 'exampleId'
>;

/** Responses of the routes of a kind of resource: its view without secrets, and warnings after a write. */
class ResourceAnswers<A extends Access, Resource extends object> {
  readonly #description: AnswerDescription<A, Resource>;

  constructor(description: AnswerDescription<A, Resource>) {
    this.#description = description;
  }

  toView(resource: Resource, context: { readonly caller: CallerOf<A>; readonly settings: ServiceSettings }): unknown {
    const { secrets = {} } = resourceOf(this.#description.kind);
    return this.#description.toView(hideSecrets({ secrets }, resource), context);
  }

  /** Documented responses of a route that writes. */
  writeResponses(status: 200 | 201, responses: Route['responses'] = {}): Route['responses'] {
    const { [status]: view = this.#description.view, ...otherResponses } = responses;
    return { [status]: view instanceof z.ZodObject ? withWarnings(view) : view, ...otherResponses };
  }

  readHandler(find: Find, execute: (input: Input) => Promise<Resource>): Handler {
    return async (input) => {
      const resource = await execute(input);
      const context = { caller: input.caller as CallerOf<A>, settings: find(ServiceSettings) };
      return show(200, await this.toView(resource, context), this.#stored(resource));
    };
  }

  /** View of a written resource with warnings about what wallets or verifiers will reject. */
  writeHandler(find: Find, status: number, execute: (input: Input, report: ReportFindings) => Promise<Resource>): Handler {
    const { kind, findings, profile: profileOfWritten } = this.#description;
    return async (input) => {
      const reported: Finding[] = [];
      const resource = await execute(input, (problems) => reported.push(...problems));
      const context = { caller: input.caller as CallerOf<A>, settings: find(ServiceSettings) };
      const profile = profileOfWritten?.(resource) ?? profileOf(input.caller);
      const ownWarnings = warningsFor(kind, this.#stored(resource), profile);
      const derived = (await findings?.(resource, context.caller)) ?? [];
      const warnings = [...ownWarnings, ...warningsOf([...derived, ...reported], profile)];
      return show(status, { ...((await this.toView(resource, context)) as object), warnings }, this.#stored(resource));
    };
  }

  #stored(resource: Resource): object {
    return this.#description.stored?.(resource) ?? resource;
  }
}

type AnswerDescription<A extends Access, Resource> = Pick<
  Description<A, Resource, undefined>,
  'kind' | 'view' | 'toView' | 'stored' | 'profile' | 'findings'
>;
