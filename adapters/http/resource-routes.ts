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

/** Of a use case: what it is executed with, and what comes of it. */
type UseCase<Given extends readonly unknown[], Result> = Token<{ readonly execute: (...given: Given) => Promise<Result> }>;

/** What one is called by among those of its tenant; nothing where a tenant has one. */
type Key<Params> = Params extends z.ZodObject ? readonly [z.output<Params>[keyof z.output<Params>]] : readonly [];

type Description<A extends Access, Resource, Params> = {
  readonly kind: EditedKind;
  readonly tag: string;
  readonly path: `/${string}`;
  /** What stands for one of them in the path, as the only member; absent where a tenant has one. */
  readonly params?: Params;
  /** Example of `params` for the API document, if there is no common one for its name. */
  readonly exampleId?: string;
  readonly access: A;
  /** What holds for routes that write. */
  readonly writes?: Pick<Partial<Route>, 'access' | 'bodyLimit'>;
  readonly view: z.ZodType;
  readonly get: UseCase<readonly [CallerOf<A>, ...Key<Params>], Resource>;
  /** Given without its secrets, which no answer shows. */
  toView(resource: Resource, context: { readonly caller: CallerOf<A>; readonly settings: ServiceSettings }): unknown;
  /** What one is listed by; its `id` unless stated. */
  key?(resource: Resource): string;
  /** What its `ETag` is made of, where that is a part of it. */
  stored?(resource: Resource): object;
  /** The profile of the written tenant, whose caller belongs to no tenant; for other kinds that of the caller's tenant counts. */
  profile?(resource: Resource): Profile | null;
  /** What somebody will refuse of it that is not in it, but follows from it. */
  findings?(resource: Resource, caller: CallerOf<A>): readonly Finding[] | Promise<readonly Finding[]>;
};

/** What the API document says of a route beside what all have in common. */
type Told = Pick<Route, 'operationId' | 'summary'> & Pick<Partial<Route>, 'description' | 'responses'>;
type Written<Body extends z.ZodType> = Told &
  Pick<Partial<Route>, 'members' | 'bodyLimit'> & { readonly body: Body; readonly example: unknown };

/** `reporting`: the use case reports findings that do not follow from the stored resource. */
type Writer<A extends Access, Resource, Given extends readonly unknown[]> =
  | UseCase<readonly [CallerOf<A>, ...Given], Resource>
  | { readonly reporting: UseCase<readonly [CallerOf<A>, ...Given, ReportFindings], Resource> };
type Input = { readonly caller: unknown; readonly params: unknown; readonly body?: unknown };
type Handler = (input: Input) => Promise<Reply>;

/** Makes the routes of one kind of resource as its administrators call them, in the order in which they are asked for. */
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

  list({ by, ...told }: Told & { readonly by: UseCase<readonly [CallerOf<A>], readonly Resource[]> }): Family {
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
      return [{ ...this.#address.all, ...told, method: 'get', query: ListQuery, responses: { 200: z.array(view) }, handle }];
    };
  }

  get(told: Told): Family {
    const { kind, view } = this.#description;
    const responses = { 200: view, ...told.responses };
    return (find) => [{ ...this.#address.one, ...told, method: 'get', edits: { kind }, responses, handle: this.#show(find) }];
  }

  /** @param replaces whether an existing resource is replaced: the one with the id in the body, if there are many. */
  create<Body extends z.ZodType>({
    by,
    replaces = false,
    ...told
  }: Written<Body> & { readonly by: Writer<A, Resource, [z.output<Body>]>; readonly replaces?: boolean }): Family {
    const { kind, writes } = this.#description;
    const { all, hasMany } = this.#address;
    const id = ({ body }: { readonly body: { readonly id: string } }) => (hasMany ? body.id : 'default');
    const edits = replaces ? { kind, id } : { kind };
    const responses = this.#answers.written(201, told.responses);
    return (find) => {
      const execute = executing<A, Resource, [z.output<Body>]>(find, by);
      const handle = this.#answers.withWarnings(find, 201, ({ caller, body }, report) =>
        execute([caller as CallerOf<A>, body as z.output<Body>], report),
      );
      return [{ ...all, ...writes, ...told, method: 'post', edits, responses, handle }];
    };
  }

  replace<Body extends z.ZodType>(told: WrittenOne<A, Resource, Params, Body>): Family {
    return this.#write('put', told);
  }

  update<Body extends z.ZodType>(told: WrittenOne<A, Resource, Params, Body>): Family {
    return this.#write('patch', told);
  }

  delete({ by, ...told }: Told & { readonly by: UseCase<readonly [CallerOf<A>, ...Key<Params>], unknown> }): Family {
    const { one, edits, keyOf, idOf } = this.#address;
    const responses = { 200: DeletedView, ...told.responses };
    return (find) => {
      const useCase = find(by);
      const handle: Handler = async ({ caller, params }) => {
        await useCase.execute(caller as CallerOf<A>, ...keyOf(params));
        return reply(200, { id: idOf(params) });
      };
      return [{ ...one, ...this.#description.writes, ...told, method: 'delete', edits, responses, handle }];
    };
  }

  #show(find: Find): Handler {
    const useCase = find(this.#description.get);
    return this.#answers.shown(find, ({ caller, params }) => useCase.execute(caller as CallerOf<A>, ...this.#address.keyOf(params)));
  }

  #write<Body extends z.ZodType>(method: 'put' | 'patch', { by, ...told }: WrittenOne<A, Resource, Params, Body>): Family {
    const { one, edits, keyOf } = this.#address;
    const responses = this.#answers.written(200, told.responses);
    return (find) => {
      const execute = executing<A, Resource, [...Key<Params>, z.output<Body>]>(find, by);
      const handle = this.#answers.withWarnings(find, 200, ({ caller, params, body }, report) =>
        execute([caller as CallerOf<A>, ...keyOf(params), body as z.output<Body>], report),
      );
      return [{ ...one, ...this.#description.writes, ...told, method, edits, shows: this.#show(find), responses, handle }];
    };
  }
}

type WrittenOne<A extends Access, Resource, Params, Body extends z.ZodType> = Written<Body> & {
  readonly by: Writer<A, Resource, [...Key<Params>, z.output<Body>]>;
};

/** Runs a use case that writes, whether or not it reports findings. */
function executing<A extends Access, Resource, Given extends readonly unknown[]>(find: Find, by: Writer<A, Resource, Given>) {
  if ('reporting' in by) {
    const useCase = find(by.reporting);
    return (given: readonly [CallerOf<A>, ...Given], report: ReportFindings) => useCase.execute(...given, report);
  }
  const useCase = find(by);
  return (given: readonly [CallerOf<A>, ...Given]) => useCase.execute(...given);
}

/** The addresses of a kind of resource: of all of them, and of one by its key. */
class ResourceAddress<K extends readonly unknown[]> {
  readonly all: Pick<Route, 'tag' | 'surface' | 'access' | 'path'>;
  readonly one: Pick<Route, 'tag' | 'surface' | 'access' | 'path'> & Pick<Partial<Route>, 'params' | 'exampleParameters'>;
  /** Whether a tenant has more than one. */
  readonly hasMany: boolean;
  readonly keyOf: (params: unknown) => K;
  readonly idOf = (params: unknown): string => String(this.keyOf(params)[0] ?? 'default');
  readonly edits: NonNullable<Route['edits']>;

  constructor({ kind, tag, path, params, access, exampleId }: AddressDescription) {
    const [name] = Object.keys(params?.shape ?? {});
    this.all = { tag, surface: 'admin', access, path };
    const example = exampleId === undefined ? {} : { exampleParameters: { [String(name)]: exampleId } };
    this.one = params === undefined ? this.all : { ...this.all, ...example, path: `${path}/:${name}`, params };
    this.hasMany = name !== undefined;
    this.keyOf = (given) => (name === undefined ? [] : [(given as Readonly<Record<string, unknown>>)[name]]) as unknown as K;
    this.edits = { kind, id: ({ params: given }) => this.idOf(given) };
  }
}

type AddressDescription = Pick<
  Description<Access, object, z.ZodObject | undefined>,
  'kind' | 'tag' | 'path' | 'params' | 'access' | 'exampleId'
>;

/** What routes of a kind of resource answer: its view without secrets, and the warnings of one that was written. */
class ResourceAnswers<A extends Access, Resource extends object> {
  readonly #description: AnswerDescription<A, Resource>;

  constructor(description: AnswerDescription<A, Resource>) {
    this.#description = description;
  }

  toView(resource: Resource, context: { readonly caller: CallerOf<A>; readonly settings: ServiceSettings }): unknown {
    const { secrets = {} } = resourceOf(this.#description.kind);
    return this.#description.toView(hideSecrets({ secrets }, resource), context);
  }

  /** Documented answers of a route that writes. */
  written(status: 200 | 201, responses: Route['responses'] = {}): Route['responses'] {
    const { [status]: view = this.#description.view, ...others } = responses;
    return { [status]: view instanceof z.ZodObject ? withWarnings(view) : view, ...others };
  }

  shown(find: Find, execute: (input: Input) => Promise<Resource>): Handler {
    return async (input) => {
      const resource = await execute(input);
      const context = { caller: input.caller as CallerOf<A>, settings: find(ServiceSettings) };
      return show(200, await this.toView(resource, context), this.#stored(resource));
    };
  }

  /** The view of a written resource with warnings of what its readers will reject. */
  withWarnings(find: Find, status: number, execute: (input: Input, report: ReportFindings) => Promise<Resource>): Handler {
    const { kind, findings, profile: profileOfWritten } = this.#description;
    return async (input) => {
      const reported: Finding[] = [];
      const resource = await execute(input, (some) => reported.push(...some));
      const context = { caller: input.caller as CallerOf<A>, settings: find(ServiceSettings) };
      const profile = profileOfWritten?.(resource) ?? profileOf(input.caller);
      const own = warningsFor(kind, this.#stored(resource), profile);
      const derived = (await findings?.(resource, context.caller)) ?? [];
      const warnings = [...own, ...warningsOf([...derived, ...reported], profile)];
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
