import { useId } from 'preact/hooks';

type Json = Readonly<Record<string, unknown>>;

type Field = {
  readonly path: readonly string[];
  readonly kind: 'text' | 'number' | 'date' | 'truth' | 'choice' | 'json';
  readonly title: string;
  readonly hint: string;
  readonly isRequired: boolean;
  readonly choices: readonly unknown[];
};

/** Members of members that have a field each; what is deeper is written as JSON. */
const DEEPEST = 3;
const MOST_FIELDS = 60;

/** The fields of an object that fits a JSON Schema; undefined where the schema names no members one by one. */
export function fieldsOf(schema: unknown): readonly Field[] | undefined {
  if (!isObject(schema) || !isObject(schema['properties'])) return undefined;
  const fields = membersOf(schema, [], true);
  return fields.length > 0 && fields.length <= MOST_FIELDS ? fields : undefined;
}

function membersOf(schema: Json, path: readonly string[], isRequired: boolean): Field[] {
  const required = Array.isArray(schema['required']) ? schema['required'] : [];
  return Object.entries(schema['properties'] as Json).flatMap(([name, inner]) => {
    const member = isObject(inner) ? inner : {};
    const here = [...path, name];
    const isNeeded = isRequired && required.includes(name);
    if (isObject(member['properties']) && here.length < DEEPEST) return membersOf(member, here, isNeeded);
    return [fieldOf(member, here, isNeeded)];
  });
}

function fieldOf(schema: Json, path: readonly string[], isRequired: boolean): Field {
  const { title, description } = schema;
  const choices = Array.isArray(schema['enum']) ? schema['enum'] : [];
  return {
    path,
    kind: choices.length > 0 ? 'choice' : kindOf(schema),
    title: typeof title === 'string' ? title : path.join(' › '),
    hint: typeof description === 'string' ? description : '',
    isRequired,
    choices,
  };
}

function kindOf({ type, format }: Json): Field['kind'] {
  if (type === 'string') return format === 'date' ? 'date' : 'text';
  if (type === 'number' || type === 'integer') return 'number';
  return type === 'boolean' ? 'truth' : 'json';
}

/** @throws Error for JSON that is none. */
export function valuesOf(fields: readonly Field[], form: FormData): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const field of fields) {
    const text = String(form.get(nameOf(field)) ?? '');
    if (text !== '') put(values, field.path, readField(field, text));
  }
  return values;
}

function readField({ kind, title, choices }: Field, text: string): unknown {
  if (kind === 'number') return Number(text);
  if (kind === 'truth') return text === 'true';
  if (kind === 'choice') return choices[Number(text)];
  return kind === 'json' ? readJson(text, title) : text;
}

/** @throws Error that names what is no JSON. */
export function readJson(text: string, title: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`${title} is no JSON`);
  }
}

/** Own members only: a schema may name `__proto__`. */
function put(values: Record<string, unknown>, [name = '', ...rest]: readonly string[], value: unknown): void {
  const before = Object.hasOwn(values, name) ? values[name] : undefined;
  const inner = rest.length === 0 ? value : isObject(before) ? { ...before } : {};
  if (rest.length > 0) put(inner as Record<string, unknown>, rest, value);
  Object.defineProperty(values, name, { value: inner, enumerable: true, configurable: true, writable: true });
}

const nameOf = ({ path }: Field) => JSON.stringify(path);

/** A field for each member; the service says whether what is filled in fits the whole schema. */
export function SchemaFields({ fields }: { readonly fields: readonly Field[] }) {
  return (
    <>
      {fields.map((field) => (
        <FieldView key={nameOf(field)} field={field} />
      ))}
    </>
  );
}

function FieldView({ field }: { readonly field: Field }) {
  const id = useId();
  const { title, hint, isRequired } = field;
  return (
    <>
      <label for={id}>{isRequired ? title : `${title} (optional)`}</label>
      <Input field={field} id={id} hintId={hint === '' ? undefined : `${id}-hint`} />
      {hint !== '' && <small id={`${id}-hint`}>{hint}</small>}
    </>
  );
}

type InputProps = { readonly field: Field; readonly id: string; readonly hintId: string | undefined };

function Input({ field, id, hintId }: InputProps) {
  const { kind, isRequired, choices } = field;
  const common = { id, name: nameOf(field), required: isRequired, 'aria-describedby': hintId };
  if (kind === 'truth' || kind === 'choice') {
    const offered = kind === 'truth' ? ['true', 'false'] : choices.map(asText);
    return (
      <select {...common}>
        <option value="">–</option>
        {offered.map((text, index) => (
          <option key={text} value={kind === 'truth' ? text : String(index)}>
            {kind === 'truth' ? { true: 'yes', false: 'no' }[text] : text}
          </option>
        ))}
      </select>
    );
  }
  if (kind === 'json') return <textarea {...common} rows={3} placeholder="JSON" />;
  if (kind === 'number') return <input {...common} type="number" step="any" />;
  if (kind === 'date') return <input {...common} type="date" />;
  return <input {...common} type="text" autocomplete="off" />;
}

const asText = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
