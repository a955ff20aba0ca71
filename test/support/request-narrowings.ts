import fc from 'fast-check';

/** The parts of an OpenAPI 3.1 document that describe requests. */
export type ApiDocument = {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components?: { readonly schemas?: Readonly<Record<string, Schema>> };
};

type Operation = {
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly required?: boolean; readonly content: Readonly<Record<string, { readonly schema?: Schema }>> };
};
type Parameter = { readonly name: string; readonly in: string; readonly required?: boolean; readonly schema?: Schema };
type Schema = boolean | { readonly [keyword: string]: unknown };

/** A property that requests to the older release may have and requests to the newer one may not. */
export type Narrowing = {
  /** Method and path, such as `POST /tenant`. */
  readonly operation: string;
  /** `parameter x`, `body`, or the dotted path of a property; `[]` stands for the items of an array. Empty: the operation. */
  readonly location: string;
  readonly problem: string;
};

/** A changelog line for the narrowing, with the problem as its reason. */
export function changelogLine({ operation, location, problem }: Narrowing): string {
  return `- \`${operation}\`${location === '' ? '' : ` property \`${location}\``}: ${problem}`;
}

/** Allowed narrowings by operation; a location that ends with `*` is a prefix. */
export type AllowedNarrowing = { readonly operation: string; readonly location: string };

/**
 * Lines under *Breaking* of all versions above `release`, such as ``- `POST /x`, `PUT /x/{id}` property `a.b`: reason``.
 * @param changelog text of `CHANGELOG.md`, the newest version first.
 */
export function allowedByChangelog(changelog: string, release: string): readonly AllowedNarrowing[] {
  const allowed: AllowedNarrowing[] = [];
  let isBreaking = false;
  for (const line of changelog.split('\n')) {
    const [, version] = /^## \[?v?(\S+?)\]?(?:\s|$)/.exec(line) ?? [];
    if (version === release) break;
    if (line.startsWith('#')) isBreaking = /^#{3} Breaking\b/.test(line);
    const [, operations = '', location = '', reason = ''] =
      /^- ((?:`[A-Z]+ [^`]+`(?:, )?)+)(?: property `([^`]+)`)?: (.*)$/.exec(line) ?? [];
    if (!isBreaking || reason.trim() === '') continue;
    for (const [, operation = ''] of operations.matchAll(/`([^`]+)`/g)) allowed.push({ operation, location });
  }
  return allowed;
}

export function isAllowed({ operation, location }: Narrowing, allowed: readonly AllowedNarrowing[]): boolean {
  return allowed.some(
    (each) =>
      each.operation === operation &&
      (each.location.endsWith('*') ? location.startsWith(each.location.slice(0, -1)) : location === each.location),
  );
}

/** @returns where the newer document accepts less than the older one, in the order of the older document. */
export function findRequestNarrowings(older: ApiDocument, newer: ApiDocument): readonly Narrowing[] {
  const operations = new Map<string, Operation>();
  for (const [path, item] of Object.entries(newer.paths)) {
    for (const [method, operation] of Object.entries(item)) operations.set(nameOf(method, path), operation);
  }
  return Object.entries(older.paths).flatMap(([path, item]) =>
    Object.entries(item).flatMap(([method, before]) => {
      const after = operations.get(nameOf(method, path));
      const operation = `${method.toUpperCase()} ${path}`;
      const report = (location: string, problem: string): Narrowing => ({ operation, location, problem });
      if (after === undefined) return [report('', 'the operation is gone')];
      const compare = new Comparison(older, newer);
      return [...parameterNarrowings(before, after, compare), ...bodyNarrowings(before, after, compare)].map(({ location, problem }) =>
        report(location, problem),
      );
    }),
  );
}

/** Names of path parameters do not matter. */
function nameOf(method: string, path: string): string {
  return `${method} ${path.replaceAll(/\{[^}]+\}/g, '{}')}`;
}

type Problem = Pick<Narrowing, 'location' | 'problem'>;

function parameterNarrowings(before: Operation, after: Operation, compare: Comparison): readonly Problem[] {
  const problems: Problem[] = [];
  const older = before.parameters ?? [];
  const newer = (after.parameters ?? []).filter(({ in: where }) => where !== 'path');
  const parameterKey = (parameter: Parameter) => `${parameter.in} ${parameter.name}`.toLowerCase();
  for (const parameter of older.filter(({ in: where }) => where !== 'path')) {
    const location = `parameter ${parameter.name}`;
    const counterpart = newer.find((each) => parameterKey(each) === parameterKey(parameter));
    if (counterpart === undefined) {
      problems.push({ location, problem: 'the parameter is gone' });
      continue;
    }
    problems.push(...compare.schemas(parameter.schema ?? true, counterpart.schema ?? true, location));
  }
  for (const parameter of newer) {
    const oldParameter = older.find((each) => parameterKey(each) === parameterKey(parameter));
    if (parameter.required === true && oldParameter?.required !== true)
      problems.push({ location: `parameter ${parameter.name}`, problem: 'it is required now' });
  }
  return problems;
}

function bodyNarrowings(before: Operation, after: Operation, compare: Comparison): readonly Problem[] {
  const [older, newer] = [before.requestBody, after.requestBody];
  const problems: Problem[] = [];
  if (newer?.required === true && older?.required !== true) problems.push({ location: 'body', problem: 'it is required now' });
  for (const [type, { schema = true }] of Object.entries(older?.content ?? {})) {
    const counterpart = newer?.content[type];
    if (counterpart === undefined) problems.push({ location: 'body', problem: `${type} is not accepted any more` });
    else problems.push(...compare.schemas(schema, counterpart.schema ?? true, ''));
  }
  return problems;
}

const TYPES = ['null', 'boolean', 'object', 'array', 'number', 'integer', 'string'];
const LOWER_BOUNDS = ['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties', 'minContains'];
const UPPER_BOUNDS = ['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties', 'maxContains'];
const EXACT = ['pattern', 'format', 'multipleOf', 'uniqueItems', 'contentEncoding', 'not', 'contains'];

const SAMPLES = 100;
const WIDER = new Map<string, boolean>();

/** Whether one pattern matches all samples of another one, which are the same at each run. */
function isWider(pattern: string, counterpart: string): boolean {
  const pair = JSON.stringify([pattern, counterpart]);
  const result = WIDER.get(pair) ?? matchesSamples(pattern, counterpart);
  WIDER.set(pair, result);
  return result;
}

function matchesSamples(pattern: string, counterpart: string): boolean {
  const [wide, narrow] = [new RegExp(pattern, 'u'), new RegExp(counterpart, 'u')];
  try {
    const texts = fc.stringMatching(new RegExp(withoutLookaheads(counterpart)), { maxLength: 100 });
    return fc
      .sample(texts, { numRuns: SAMPLES, seed: 1 })
      .filter((text) => narrow.test(text))
      .every((text) => wide.test(text));
  } catch {
    // The generator does not know every construct.
    return false;
  }
}

function withoutLookaheads(pattern: string): string {
  const start = pattern.indexOf('(?!');
  if (start < 0) return pattern;
  let depth = 1;
  let end = start + 3;
  for (; depth > 0 && end < pattern.length; end++) {
    if (pattern[end] === '(') depth++;
    if (pattern[end] === ')') depth--;
  }
  return withoutLookaheads(pattern.slice(0, start) + pattern.slice(end));
}

const LOST_TYPE = 'not accepted any more are values of the type';

const LOST_CONST = 'not accepted any more is';
const LOST_VALUES = 'not accepted any more are';

class Comparison {
  readonly #older: ApiDocument;
  readonly #newer: ApiDocument;
  /** Pairs of references that are being compared, for schemas that contain themselves. */
  readonly #open = new Set<string>();

  constructor(older: ApiDocument, newer: ApiDocument) {
    this.#older = older;
    this.#newer = newer;
  }

  /** @returns why some value that `was` accepts is rejected by `is`; where that cannot be decided, it says so. */
  schemas(older: Schema, newer: Schema, location: string): readonly Problem[] {
    const pair = JSON.stringify([refOf(older), refOf(newer)]);
    const isReference = refOf(older) !== undefined || refOf(newer) !== undefined;
    if (isReference && this.#open.has(pair)) return [];
    if (isReference) this.#open.add(pair);
    try {
      return this.#compare(resolve(older, this.#older), resolve(newer, this.#newer), location);
    } finally {
      if (isReference) this.#open.delete(pair);
    }
  }

  #compare(older: Schema, newer: Schema, location: string): readonly Problem[] {
    const toProblem = (problem: string): Problem[] => [{ location: location || 'body', problem }];
    if (newer === true || older === false || isNever(older)) return [];
    if (newer === false || isNever(newer)) return toProblem('it is not accepted any more');
    if (older === true) return Object.keys(constraintsOf(newer)).length === 0 ? [] : this.#compare({}, newer, location);
    for (const keyword of ['anyOf', 'oneOf', 'allOf'] as const) {
      const [oldBranches] = [older[keyword]];
      if (keyword === 'allOf' || !Array.isArray(oldBranches)) continue;
      const rest = omitKeyword(older, keyword);
      return oldBranches.flatMap((branch: Schema) => this.schemas(merge(resolve(branch, this.#older), rest), newer, location));
    }
    if (Array.isArray(older['allOf'])) {
      const texts = older['allOf'].map((part) => JSON.stringify(part));
      const parts = older['allOf'].map((part: Schema) => resolve(part, this.#older)).filter((part) => !isCondition(part));
      // A part in both schemas narrows nothing.
      const rest = Array.isArray(newer['allOf'])
        ? { ...newer, allOf: newer['allOf'].filter((part) => !texts.includes(JSON.stringify(part))) }
        : newer;
      return this.#compare(parts.reduce(merge, omitKeyword(older, 'allOf')), rest, location);
    }
    const problems: Problem[] = [];
    for (const keyword of ['if', 'then', 'else', 'dependentRequired'] as const) {
      if (newer[keyword] !== undefined && JSON.stringify(newer[keyword]) !== JSON.stringify(older[keyword]))
        problems.push(...toProblem(`the condition ${keyword} ${JSON.stringify(newer[keyword])} is new`));
    }
    if (Array.isArray(newer['allOf'])) problems.push(...newer['allOf'].flatMap((part: Schema) => this.schemas(older, part, location)));
    for (const keyword of ['anyOf', 'oneOf'] as const) {
      const branches = newer[keyword];
      if (Array.isArray(branches)) problems.push(...this.#oneOf(older, branches, location));
    }
    return [...problems, ...this.#keywords(older, newer, location, toProblem)];
  }

  /** The best matching branch decides. */
  #oneOf(older: Schema, branches: readonly Schema[], location: string): readonly Problem[] {
    let fewestProblems: readonly Problem[] | undefined;
    let leastCost = Number.POSITIVE_INFINITY;
    // A value of several types may need several branches.
    const types = typeof older === 'object' ? typesOf(older) : TYPES;
    if (types.length > 1 && typeof older === 'object' && older['const'] === undefined && !Array.isArray(older['enum'])) {
      const singleType = types.filter((type) => type !== 'integer' || !types.includes('number'));
      return singleType.flatMap((type) => this.#oneOf({ ...older, type }, branches, location));
    }
    for (const branch of branches) {
      const problems = this.schemas(older, branch, location);
      if (problems.length === 0) return [];
      // A branch for another type says nothing about what was narrowed.
      const isOtherType = problems.some((each) => each.location === (location || 'body') && each.problem.startsWith(LOST_TYPE));
      // The same goes for a branch that another value of a property selects.
      const isOtherKind = problems.some(({ problem }) => problem.startsWith(LOST_CONST));
      const cost = problems.length + (isOtherType ? 1_000 : 0) + (isOtherKind ? 500 : 0);
      if (cost >= leastCost) continue;
      [fewestProblems, leastCost] = [problems, cost];
    }
    return fewestProblems ?? [];
  }

  #keywords(
    older: Exclude<Schema, boolean>,
    newer: Exclude<Schema, boolean>,
    location: string,
    toProblem: (problem: string) => Problem[],
  ): readonly Problem[] {
    const problems: Problem[] = [];
    const types = typesOf(older);
    const lostTypes = types.filter((type) => !acceptsType(typesOf(newer), type));
    if (lostTypes.length > 0) return toProblem(`${LOST_TYPE} ${lostTypes.join(', ')}`);
    const values = valuesOf(newer);
    if (values !== undefined) {
      const former = valuesOf(older);
      const missing = former?.filter((value) => !values.includes(value));
      if (former === undefined) return toProblem(`only ${values.join(', ')} is accepted now`);
      if (missing !== undefined && missing.length > 0)
        problems.push(...toProblem(`${'const' in newer ? LOST_CONST : LOST_VALUES} ${missing.join(', ')}`));
    }
    // Values that are listed one by one need no comparison of the rules for them.
    if (valuesOf(older) !== undefined) return problems;
    for (const keyword of LOWER_BOUNDS) {
      const [oldBound, newBound] = [older[keyword], newer[keyword]];
      if (typeof newBound !== 'number' || !appliesTo(keyword, types) || newBound <= minimumOf(keyword)) continue;
      if (typeof oldBound !== 'number' || newBound > oldBound)
        problems.push(...toProblem(`${keyword} is ${newBound}, was ${oldBound ?? 'not limited'}`));
    }
    for (const keyword of UPPER_BOUNDS) {
      const [oldBound, newBound] = [older[keyword], newer[keyword]];
      if (typeof newBound !== 'number' || !appliesTo(keyword, types) || newBound >= Number.MAX_SAFE_INTEGER) continue;
      if (typeof oldBound !== 'number' || newBound < oldBound)
        problems.push(...toProblem(`${keyword} is ${newBound}, was ${oldBound ?? 'not limited'}`));
    }
    for (const keyword of EXACT) {
      const [oldBound, newBound] = [older[keyword], newer[keyword]];
      if (newBound === undefined || !appliesTo(keyword, types) || JSON.stringify(oldBound) === JSON.stringify(newBound)) continue;
      if (keyword === 'pattern' && typeof oldBound === 'string' && isWider(String(newBound), oldBound)) continue;
      problems.push(
        ...toProblem(`${keyword} is ${JSON.stringify(newBound)}, was ${oldBound === undefined ? 'free' : JSON.stringify(oldBound)}`),
      );
    }
    if (types.includes('object')) problems.push(...this.#objects(older, newer, location));
    if (types.includes('array')) problems.push(...this.#arrays(older, newer, location));
    return problems;
  }

  #objects(older: Exclude<Schema, boolean>, newer: Exclude<Schema, boolean>, location: string): readonly Problem[] {
    const problems: Problem[] = [];
    const nestedNames = (name: string) => (location === '' ? name : `${location}.${name}`);
    const [before, after] = [propertiesOf(older), propertiesOf(newer)];
    const [restBefore, restAfter] = [restOf(older), restOf(newer)];
    for (const name of requiredOf(newer)) {
      if (!requiredOf(older).includes(name)) problems.push({ location: nestedNames(name), problem: 'it is required now' });
    }
    for (const [name, schema] of Object.entries(before)) {
      problems.push(...this.schemas(schema, after[name] ?? restAfter, nestedNames(name)));
    }
    // A property that is new for the older document was accepted there as any other one.
    if (restBefore !== false) {
      for (const [name, schema] of Object.entries(after)) {
        if (before[name] === undefined && typeof restBefore === 'object')
          problems.push(...this.schemas(restBefore, schema, nestedNames(name)));
      }
      if (restAfter === false) problems.push({ location: location || 'body', problem: 'other properties are not accepted any more' });
      else problems.push(...this.schemas(restBefore, restAfter, nestedNames('*')));
    }
    if (newer['propertyNames'] !== undefined)
      problems.push(
        ...this.schemas(
          merge((older['propertyNames'] as Schema | undefined) ?? true, { type: 'string' }),
          merge(newer['propertyNames'] as Schema, { type: 'string' }),
          nestedNames('*'),
        ),
      );
    return problems;
  }

  #arrays(older: Exclude<Schema, boolean>, newer: Exclude<Schema, boolean>, location: string): readonly Problem[] {
    const count = Math.max(headsOf(older)?.length ?? 0, headsOf(newer)?.length ?? 0);
    const problems = Array.from({ length: count }, (_, index) =>
      this.schemas(itemOf(older, index), itemOf(newer, index), `${location}[${index}]`),
    ).flat();
    const items = (older['items'] as Schema | undefined) ?? true;
    return items === false
      ? problems
      : [...problems, ...this.schemas(items, (newer['items'] as Schema | undefined) ?? true, `${location}[]`)];
  }
}

function headsOf(schema: Exclude<Schema, boolean>): readonly Schema[] | undefined {
  const { prefixItems } = schema;
  return Array.isArray(prefixItems) ? prefixItems : undefined;
}

function itemOf(schema: Exclude<Schema, boolean>, index: number): Schema {
  return headsOf(schema)?.[index] ?? (schema['items'] as Schema | undefined) ?? true;
}

function refOf(schema: Schema): string | undefined {
  const ref = typeof schema === 'object' ? schema['$ref'] : undefined;
  return typeof ref === 'string' ? ref : undefined;
}

function resolve(schema: Schema, document: ApiDocument): Schema {
  const ref = refOf(schema);
  if (ref === undefined) return schema;
  const name = ref.replace('#/components/schemas/', '');
  const target = document.components?.schemas?.[name];
  if (target === undefined) throw new Error(`The API document has no schema ${ref}.`);
  return merge(resolve(target, document), omitKeyword(schema as Exclude<Schema, boolean>, '$ref'));
}

const ANNOTATIONS = ['title', 'description', 'example', 'examples', 'default', 'deprecated', 'readOnly', 'writeOnly', '$comment'];

function constraintsOf(schema: Exclude<Schema, boolean>): Exclude<Schema, boolean> {
  return Object.fromEntries(Object.entries(schema).filter(([keyword]) => !ANNOTATIONS.includes(keyword)));
}

function omitKeyword(schema: Exclude<Schema, boolean>, keyword: string): Exclude<Schema, boolean> {
  const { [keyword]: _left, ...rest } = schema;
  return rest;
}

/** Merges two schemas that both apply; for the same keyword the first one counts. */
function merge(one: Schema, counterpart: Schema): Schema {
  if (one === false || counterpart === false) return false;
  if (one === true) return counterpart;
  if (counterpart === true) return one;
  const types = typesOf(one).filter((type) => acceptsType(typesOf(counterpart), type));
  if (types.length === 0) return false;
  const heads = headsOf(one) ?? headsOf(counterpart);
  return {
    ...counterpart,
    ...one,
    ...((one['type'] ?? counterpart['type']) !== undefined && { type: types.length === 1 ? types[0] : types }),
    // Rules for all items count for the first ones, too, where they stand in different parts.
    ...(heads !== undefined && {
      prefixItems: heads.map((head, index) => merge(head, itemOf(headsOf(one) === undefined ? one : counterpart, index))),
    }),
    ...((one['properties'] ?? counterpart['properties']) !== undefined && {
      properties: { ...propertiesOf(counterpart), ...propertiesOf(one) },
    }),
    ...((one['required'] ?? counterpart['required']) !== undefined && {
      required: [...new Set([...requiredOf(one), ...requiredOf(counterpart)])],
    }),
  };
}

function isCondition(schema: Schema): boolean {
  return typeof schema === 'object' && 'if' in schema;
}

function isNever(schema: Schema): boolean {
  const not = typeof schema === 'object' ? schema['not'] : undefined;
  return not === true || (typeof not === 'object' && not !== null && Object.keys(not).length === 0);
}

function typesOf(schema: Exclude<Schema, boolean>): readonly string[] {
  const { type } = schema;
  if (typeof type === 'string') return [type];
  if (Array.isArray(type)) return type as string[];
  const values = Array.isArray(schema['enum']) ? schema['enum'] : 'const' in schema ? [schema['const']] : undefined;
  if (values === undefined) return TYPES;
  return [...new Set(values.map((value) => (value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value)))];
}

function acceptsType(types: readonly string[], type: string): boolean {
  return types.includes(type) || (type === 'integer' && types.includes('number'));
}

/** Listed values as JSON texts, since two listed objects are never the same. */
function valuesOf(schema: Exclude<Schema, boolean>): readonly string[] | undefined {
  if ('const' in schema) return [JSON.stringify(schema['const'])];
  const { enum: values } = schema;
  return Array.isArray(values) ? values.map((value) => JSON.stringify(value)) : undefined;
}

const minimumOf = (keyword: string) => (/^min(Length|Items|Properties|Contains)$/.test(keyword) ? 0 : -Number.MAX_SAFE_INTEGER);

function appliesTo(keyword: string, types: readonly string[]): boolean {
  if (/Length|pattern|format|contentEncoding/.test(keyword)) return types.includes('string');
  if (/Items|[cC]ontains/.test(keyword)) return types.includes('array');
  if (/Properties/.test(keyword)) return types.includes('object');
  if (/imum|multipleOf/.test(keyword)) return types.includes('number') || types.includes('integer');
  return true;
}

function propertiesOf(schema: Schema): Readonly<Record<string, Schema>> {
  return typeof schema === 'object' ? ((schema['properties'] ?? {}) as Record<string, Schema>) : {};
}

function requiredOf(schema: Schema): readonly string[] {
  return typeof schema === 'object' && Array.isArray(schema['required']) ? schema['required'] : [];
}

/** Schema of properties that have none of their own. */
function restOf(schema: Exclude<Schema, boolean>): Schema {
  return (schema['additionalProperties'] as Schema | undefined) ?? true;
}
