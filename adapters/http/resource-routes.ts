import { z } from 'zod';
import type { Token } from '../../application/needs.ts';
import { ServiceSettings } from '../../application/ports/settings.ts';
import { type EditedKind, resourceOf } from '../../domain/resources.ts';
import { type Finding, type Profile, type ReportFindings, warningsOf } from '../../domain/shared/finding.ts';
import { hideSecrets } from '../../domain/shared/secrets.ts';
import { ListQuery, pageOf } from './page-of.ts';
import { type Access, type CallerOf, type Family, type Find, type Route, reply, show } from './route.ts';
import { DeletedView } from './shapes.ts';
import { profileOf, warningsFor, withWarnings } from './warnings.ts';

/** Of a use case: what it is executed with, and what comes of it. */
type UseCase<Given extends readonly unknown[], Result> = Token<{
  readonly execute: (...given: Given) => Promise<Result>;
}>;

/** What one is called by among those of its tenant; nothing where a tenant has one. */
type Key<Params> = Params extends z.ZodObject
  ? readonly [z.output<Params>[keyof z.output<Params>]]
  : readonly [];

type Description<A extends Access, Resource, Params> = {
  readonly kind: EditedKind;
  readonly tag: string;
  readonly path: `/${string}`;
  /** What stands for one of them in the path, as the only member; absent where a tenant has one. */
  readonly params?: Params;
  readonly access: A;
  /** What holds for routes that write. */
  readonly writes?: Pick<Partial<Route>, 'access' | 'bodyLimit'>;
  readonly view: z.ZodType;
  readonly get: UseCase<readonly [CallerOf<A>, ...Key<Params>], Resource>;
  /** Given without its secrets, which no answer shows. */
  toView(
    resource: Resource,
    context: { readonly caller: CallerOf<A>; readonly settings: ServiceSettings },
  ): unknown;
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
type Told = Pick<Route, 'summary'> & Pick<Partial<Route>, 'description' | 'responses'>;
type Written<Body extends z.ZodType> = Told &
  Pick<Partial<Route>, 'members' | 'bodyLimit'> & { readonly body: Body; readonly example: unknown };

/** Makes the routes of one kind of resource as its administrators call them, in the order in which they are asked for. */
export function resourceRoutes<
  A extends Access,
  Resource extends object,
  Params extends z.ZodObject | undefined = undefined,
>(description: Description<A, Resource, Params>) {
  type By<Given extends readonly unknown[], Result = Resource> = {
    readonly by: UseCase<readonly [CallerOf<A>, ...Given], Result>;
  };
  /** `reporting`: the use case reports findings that do not follow from the stored resource. */
  type Writer<Given extends readonly unknown[]> =
    | UseCase<readonly [CallerOf<A>, ...Given], Resource>
    | { readonly reporting: UseCase<readonly [CallerOf<A>, ...Given, ReportFindings], Resource> };
  type WrittenBy<Given extends readonly unknown[]> = { readonly by: Writer<Given> };
  type Execute<Given extends readonly unknown[]> = (
    given: readonly [CallerOf<A>, ...Given],
    report: ReportFindings,
  ) => Promise<Resource>;
  const executing = <Given extends readonly unknown[]>(find: Find, by: Writer<Given>): Execute<Given> => {
    if ('reporting' in by) {
      const useCase = find(by.reporting);
      return (given, report) => useCase.execute(...given, report);
    }
    const useCase = find(by);
    return (given) => useCase.execute(...given);
  };
  const { kind, tag, path, params, access, view, get, stored = (resource) => resource } = description;
  const { findings = () => [] } = description;
  const { key = (resource: Resource) => String((resource as { readonly id?: unknown }).id) } = description;
  const { secrets = {} } = resourceOf(kind);
  const toView: typeof description.toView = (resource, context) =>
    description.toView(hideSecrets({ secrets }, resource), context);
  const [name] = Object.keys(params?.shape ?? {});
  const all = { tag, surface: 'admin', access, path } as const;
  const one = params === undefined ? all : { ...all, path: `${path}/:${name}`, params };
  const keyOf = (given: unknown) =>
    (name === undefined
      ? []
      : [(given as Readonly<Record<string, unknown>>)[name]]) as unknown as Key<Params>;
  const idOf = (given: unknown) => String(keyOf(given)[0] ?? 'default');
  const edits = { kind, id: ({ params: given }: { readonly params: unknown }) => idOf(given) };

  /** Answers with what comes of it. */
  const showing =
    (find: Find, status: number, execute: (input: Given) => Promise<Resource>) => async (input: Given) => {
      const resource = await execute(input);
      const context = { caller: input.caller as CallerOf<A>, settings: find(ServiceSettings) };
      return show(status, await toView(resource, context), stored(resource));
    };
  /** The same, with what somebody will refuse of it. */
  const warning =
    (find: Find, status: number, execute: (input: Given, report: ReportFindings) => Promise<Resource>) =>
    async (input: Given) => {
      const reported: Finding[] = [];
      const resource = await execute(input, (some) => reported.push(...some));
      const context = { caller: input.caller as CallerOf<A>, settings: find(ServiceSettings) };
      const profile = description.profile?.(resource) ?? profileOf(input.caller);
      const own = warningsFor(kind, stored(resource), profile);
      const derived = await findings(resource, context.caller);
      const warnings = [...own, ...warningsOf([...derived, ...reported], profile)];
      return show(status, { ...((await toView(resource, context)) as object), warnings }, stored(resource));
    };
  const answers = (status: 200 | 201, responses: Route['responses'] = {}): Route['responses'] => {
    const { [status]: own = view, ...others } = responses;
    return { [status]: own instanceof z.ZodObject ? withWarnings(own) : own, ...others };
  };
  const getting = (find: Find) => {
    const useCase = find(get);
    return showing(find, 200, ({ caller, params: given }) =>
      useCase.execute(caller as CallerOf<A>, ...keyOf(given)),
    );
  };
  const writing = <Body extends z.ZodType>(
    method: 'put' | 'patch',
    { by, ...told }: Written<Body> & WrittenBy<[...Key<Params>, z.output<Body>]>,
  ): Family => {
    return (find) => {
      const execute = executing(find, by);
      const handle = warning(find, 200, ({ caller, params: given, body }, report) =>
        execute([caller as CallerOf<A>, ...keyOf(given), body as z.output<Body>], report),
      );
      const responses = answers(200, told.responses);
      const shows = getting(find);
      return [{ ...one, ...description.writes, ...told, method, edits, shows, responses, handle }];
    };
  };

  return {
    list:
      ({ by, ...told }: Told & By<[], readonly Resource[]>): Family =>
      (find) => {
        const [useCase, settings] = [find(by), find(ServiceSettings)];
        return [
          {
            ...all,
            ...told,
            method: 'get',
            query: ListQuery,
            responses: { 200: z.array(view) },
            async handle({ caller, query }) {
              const context = { caller: caller as CallerOf<A>, settings };
              return pageOf({
                all: await useCase.execute(context.caller),
                query: query as ListQuery,
                address: settings.publicUrl + path,
                keyOf: key,
                toView: (resource) => toView(resource, context),
              });
            },
          },
        ];
      },
    get:
      (told: Told): Family =>
      (find) => {
        const responses = { 200: view, ...told.responses };
        return [{ ...one, ...told, method: 'get', edits: { kind }, responses, handle: getting(find) }];
      },
    /** @param replaces whether one that is there already is replaced: that of the id in the body, if there are many. */
    create:
      <Body extends z.ZodType>({
        by,
        replaces = false,
        ...told
      }: Written<Body> & WrittenBy<[z.output<Body>]> & { readonly replaces?: boolean }): Family =>
      (find) => {
        const execute = executing(find, by);
        const handle = warning(find, 201, ({ caller, body }, report) =>
          execute([caller as CallerOf<A>, body as z.output<Body>], report),
        );
        const id = ({ body }: { readonly body: { readonly id: string } }) =>
          name === undefined ? 'default' : body.id;
        const responses = answers(201, told.responses);
        const written = { ...all, ...description.writes, ...told };
        return [{ ...written, method: 'post', edits: replaces ? { kind, id } : { kind }, responses, handle }];
      },
    replace: <Body extends z.ZodType>(
      told: Written<Body> & WrittenBy<[...Key<Params>, z.output<Body>]>,
    ): Family => writing('put', told),
    update: <Body extends z.ZodType>(
      told: Written<Body> & WrittenBy<[...Key<Params>, z.output<Body>]>,
    ): Family => writing('patch', told),
    delete:
      ({ by, ...told }: Told & By<[...Key<Params>], unknown>): Family =>
      (find) => {
        const useCase = find(by);
        return [
          {
            ...one,
            ...description.writes,
            ...told,
            method: 'delete',
            edits,
            responses: { 200: DeletedView, ...told.responses },
            async handle({ caller, params: given }) {
              await useCase.execute(caller as CallerOf<A>, ...keyOf(given));
              return reply(200, { id: idOf(given) });
            },
          },
        ];
      },
  };
}

type Given = { readonly caller: unknown; readonly params: unknown; readonly body?: unknown };
