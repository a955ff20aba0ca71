import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import ajvFormats from 'ajv-formats';
import { buildOpenApi } from '../../adapters/http/openapi/openapi.ts';
import type { RunningService } from '../../bootstrap/start/service.ts';
import { collectRoutes } from '../../bootstrap/wiring/routes.ts';

type Schema = Readonly<Record<string, unknown>>;
type Responses = Readonly<Record<string, { readonly content?: Readonly<Record<string, { schema: Schema }>> }>>;
type Document = {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly responses: Responses }>>>>;
  readonly components: Schema;
};
type Operation = { readonly name: string; readonly pattern: RegExp; readonly responses: Responses };

/** A response, as far as the API document describes it. */
export type ValidatedResponse = { readonly status: number; readonly contentType: string | null; readonly body: unknown };

/** Validates responses against the OpenAPI document. */
export class ResponseValidator {
  readonly #operations: readonly (Operation & { readonly method: string })[];
  readonly #ajv: Ajv2020;
  /** Compiled schemas by their text: most operations share their few error schemas. */
  readonly #byText = new Map<string, ValidateFunction>();
  readonly #bySchema = new Map<Schema, ValidateFunction>();
  static readonly #made = new Map<string, ResponseValidator>();
  static readonly #byEnvironment = new Map<string, ResponseValidator>();

  /** Services with the same settings share one. Collecting the routes takes a fifth of the start of a service. */
  static forService(service: RunningService, environment: Readonly<Record<string, string>>): ResponseValidator {
    const { DATABASE_URL: url = '', PORT: _port, PUBLIC_URL: _address, DATA_FOLDER: _folder, ...settings } = environment;
    const key = JSON.stringify([url.split(':', 1), settings]);
    const documentation = ResponseValidator.#byEnvironment.get(key) ?? ResponseValidator.#ofRoutes(service);
    ResponseValidator.#byEnvironment.set(key, documentation);
    return documentation;
  }

  /** Services with the same routes share one. */
  static #ofRoutes({ container }: RunningService): ResponseValidator {
    const routes = collectRoutes(container);
    const routeNames = routes.map(({ method, path }) => `${method} ${path}`).join(' ');
    const cached = ResponseValidator.#made.get(routeNames);
    if (cached !== undefined) return cached;
    const validator = new ResponseValidator(buildOpenApi(routes, { publicUrl: 'http://localhost', version: '0' }));
    ResponseValidator.#made.set(routeNames, validator);
    return validator;
  }

  private constructor(document: object) {
    const { paths, components } = document as Document;
    this.#operations = Object.entries(paths)
      // What is spelled out stands before what has parameters.
      .toSorted(([one], [two]) => one.split('{').length - two.split('{').length)
      .flatMap(([path, item]) =>
        Object.entries(item).map(([method, { responses }]) => {
          const name = `${method} ${path}`;
          const source = path.split(/\{[^}]+\}/).map((part) => part.replaceAll(/[.+?*()]/g, '\\$&'));
          return { method, name, responses, pattern: new RegExp(`^${source.join('[^/]+')}$`) };
        }),
      );
    // Each compiled schema runs only a few times, so optimizing it does not pay.
    const code = { optimize: false } as const;
    this.#ajv = new Ajv2020({ strict: false, allErrors: false, verbose: false, inlineRefs: false, code });
    ajvFormats.default(this.#ajv);
    this.#ajv.addSchema({ $id: 'https://vidimus.test/openapi', components });
  }

  /**
   * @param target path and query without the path of `PUBLIC_URL`.
   * @returns the difference between a response and the document; undefined also for requests of no operation.
   */
  findProblem(method: string, target: string, answer: ValidatedResponse): string | undefined {
    const [path = ''] = target.split(/[?#]/);
    const requestedMethod = method.toLowerCase();
    const operation = this.#operations.find((one) => one.method === requestedMethod && one.pattern.test(path));
    if (operation === undefined) return undefined;
    const { status, contentType, body } = answer;
    // The path exists with another method.
    if (status === 405) return undefined;
    const response = operation.responses[status];
    if (response === undefined) return `${operation.name} answers ${status}, which is not documented`;
    if (response.content === undefined) return undefined;
    const type = contentType?.split(';')[0]?.trim() ?? '';
    const content = response.content[type];
    if (content === undefined) return `${operation.name} answers ${status} as ${type || 'nothing'}`;
    if (!type.endsWith('json')) return undefined;
    const validate = this.#validatorOf(content.schema);
    if (validate(body)) return undefined;
    return `${operation.name} answers ${status} otherwise than documented: ${this.#ajv.errorsText(validate.errors)}`;
  }

  #validatorOf(schema: Schema): ValidateFunction {
    const bySchema = this.#bySchema.get(schema);
    if (bySchema !== undefined) return bySchema;
    const text = JSON.stringify(schema).replaceAll('"#/components/', '"https://vidimus.test/openapi#/components/');
    const validator = this.#byText.get(text) ?? this.#ajv.compile(JSON.parse(text));
    this.#bySchema.set(schema, validator);
    this.#byText.set(text, validator);
    return validator;
  }
}
