import { expect } from 'chai';
import type { Answer, CallOptions, TestService } from './test-service.ts';

type Parameter = { readonly name: string; readonly in: string; readonly example?: unknown };
type Operation = {
  readonly operationId: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly example?: object }>> };
};
type DescribedOperation = { readonly method: string; readonly path: string; readonly operation: Operation };

/** Differences of a call from the document: its token and the proofs of a wallet. */
export type ExampleCallOptions = Pick<CallOptions, 'token' | 'headers'> & { readonly service?: TestService };

/** Executes operations with the examples of the API document, filled with values of earlier responses. */
export class ExampleCalls {
  /** Values by the placeholder in angle brackets. */
  readonly answered: Record<string, string> = {};
  readonly executed = new Set<string>();
  readonly #instead = new Map<string, string>();
  readonly #service: TestService;
  readonly #operations: ReadonlyMap<string, DescribedOperation>;

  private constructor(service: TestService, operations: ReadonlyMap<string, DescribedOperation>) {
    this.#service = service;
    this.#operations = operations;
  }

  static async of(service: TestService): Promise<ExampleCalls> {
    const { paths } = (await service.call('GET', '/openapi.json')).body as { paths: Record<string, Record<string, Operation>> };
    const described = Object.entries(paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
    );
    return new ExampleCalls(service, new Map(described.map((each) => [each.operation.operationId, each])));
  }

  /** Replaces a text of the examples, such as a handle or the address of a fictional party. */
  replace(address: string, replacement: string): void {
    this.#instead.set(JSON.stringify(address), JSON.stringify(replacement));
  }

  get names(): readonly string[] {
    return [...this.#operations.keys()];
  }

  /** @throws AssertionError unless the response is a success or a redirect. */
  async run(name: string, calling: ExampleCallOptions = {}): Promise<Answer> {
    const { method, path, operation } = this.#operations.get(name) ?? {};
    if (method === undefined || path === undefined || operation === undefined) throw new Error(`no ${name}`);
    const { service = this.#service, token, headers = {} } = calling;
    const fill = (value: unknown) => this.#filled(value, name);
    const parameters = (operation.parameters ?? []).filter(({ example }) => example !== undefined);
    const of = (place: string) => parameters.filter((parameter) => parameter.in === place);
    for (const { name: parameter, in: kind, example } of operation.parameters ?? [])
      if (kind === 'path') expect(example, `${name} has an example of ${parameter}`).to.be.a('string');
    const address = path.replaceAll(/\{(\w+)\}/g, (_, parameter: string) =>
      encodeURIComponent(String(fill(of('path').find((each) => each.name === parameter)?.example))),
    );
    const query = new URLSearchParams();
    for (const each of of('query')) query.set(each.name, String(fill(each.example)));
    const content = Object.entries(operation.requestBody?.content ?? {})[0];
    if (operation.requestBody !== undefined) expect(content?.[1].example, `${name} has an example`).to.be.an('object');
    const body = fill(content?.[1].example);
    const tag = of('header').some((each) => each.name === 'If-Match') ? await this.#tagOf(service, path, address, body, token) : null;
    const repeated = of('header').find((each) => each.name === 'Idempotency-Key')?.example;
    const answer = await service.call(method, query.size === 0 ? address : `${address}?${query}`, {
      ...(token !== undefined && { token }),
      ...(content?.[0] === 'application/json' && { json: body }),
      ...(content?.[0] === 'application/x-www-form-urlencoded' && { form: body as Record<string, string> }),
      headers: {
        ...(tag !== null && { 'If-Match': tag }),
        ...(typeof repeated === 'string' && { 'Idempotency-Key': repeated }),
        ...headers,
      },
    });
    expect(answer.status, `${name}: ${answer.text.slice(0, 1_000)}`).to.be.within(200, 399);
    this.executed.add(name);
    return answer;
  }

  #filled(value: unknown, name: string): unknown {
    if (value === undefined) return undefined;
    const text = JSON.stringify(value).replaceAll(/<([^<>]+)>/g, (_, place: string) => {
      const knownValue = this.answered[place];
      if (knownValue === undefined) throw new Error(`${name}: no earlier response contained <${place}>`);
      return JSON.stringify(knownValue).slice(1, -1);
    });
    return JSON.parse([...this.#instead].reduce((result, [placeholder, replacement]) => result.replaceAll(placeholder, replacement), text));
  }

  /** The entity tag of the resource, which is read first. */
  async #tagOf(service: TestService, path: string, address: string, body: unknown, token?: string) {
    const { id } = (body ?? {}) as { id?: string };
    const isOneOfMany = [...this.#operations.values()].some((each) => each.path === `${path}/{id}`);
    const place = isOneOfMany ? `${address}/${id}` : address.replace(/\/rotate$/, '');
    const current = await service.call('GET', place, token === undefined ? {} : { token });
    return current.headers.get('etag');
  }
}
