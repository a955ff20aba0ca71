import { EXAMPLE_HANDLE } from '../oauth/described-parameters.ts';
import type { Route } from '../route.ts';

/**
 * Example values of parameters. They refer to the resources that the example bodies create; text in angle brackets stands for a value from
 * the response of a previous call, or for a proof of a wallet. The tests fill these in and execute every operation.
 */
export const ABOUT_EXAMPLES =
  'Examples of all operations fit together. Text in angle brackets, such as `<session>`, is a placeholder for a value that an earlier call ' +
  `returned, or for a proof that a wallet creates; so is \`${EXAMPLE_HANDLE}\`.`;

/** Examples of path parameters that mean the same in every route. */
const IN_PATH: Readonly<Record<string, string>> = {
  tenant: 'acme',
  certId: 'signing-2',
  listId: '<status list>',
  versionId: '<version>',
  transactionId: '<transaction>',
  deliveryId: '<delivery>',
  offerId: '<offer>',
  pageId: '<page>',
  requestId: '<request>',
};

/** Examples for lists whose route has no `limit` of its own. */
const OF_LISTS = { limit: 20, sort: 'asc' };
const HEADERS: Readonly<Record<string, string>> = { 'If-Match': '"the-etag-of-the-answer-before"', 'Idempotency-Key': 'order-4711' };

type Parameter = { readonly name: string; readonly in: string; example?: unknown };
type Operation = { readonly operationId?: string; readonly parameters?: readonly Parameter[] };
type Paths = Readonly<Record<string, Readonly<Record<string, Operation>>>>;

export function addParameterExamples(paths: Paths, routes: readonly Route[]): void {
  const examples = new Map(routes.map((route) => [route.operationId, route.exampleParameters ?? {}]));
  for (const { operationId = '', parameters = [] } of Object.values(paths).flatMap(Object.values<Operation>)) {
    for (const parameter of parameters) {
      const example = exampleOf(parameter, examples.get(operationId) ?? {});
      if (example !== undefined) parameter.example = example;
    }
  }
}

function exampleOf({ name, in: location }: Parameter, routeExamples: Readonly<Record<string, unknown>>): unknown {
  if (location === 'header') return HEADERS[name];
  if (name in routeExamples) return routeExamples[name];
  if (location === 'path') return IN_PATH[name];
  return 'limit' in routeExamples ? undefined : OF_LISTS[name as keyof typeof OF_LISTS];
}
