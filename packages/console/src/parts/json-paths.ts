export type Path = readonly (string | number)[];

/** @returns undefined where there is nothing. */
export function at(value: unknown, ...path: Path): unknown {
  return path.reduce<unknown>(
    (inner, step) =>
      typeof inner === 'object' && inner !== null && Object.hasOwn(inner, step)
        ? (inner as Readonly<Record<string | number, unknown>>)[step]
        : undefined,
    value,
  );
}

export function textAt(value: unknown, ...path: Path): string {
  const found = at(value, ...path);
  return typeof found === 'string' || typeof found === 'number' ? String(found) : '';
}

export function listAt(value: unknown, ...path: Path): readonly unknown[] {
  const found = at(value, ...path);
  return Array.isArray(found) ? found : [];
}

export function recordAt(value: unknown, ...path: Path): Readonly<Record<string, unknown>> {
  const found = at(value, ...path);
  return isRecord(found) ? found : {};
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** @returns the same with another value there. @param next undefined takes the member away. */
export function put(value: unknown, path: Path, next: unknown): unknown {
  const [step, ...rest] = path;
  if (step === undefined) return next;
  const inner = put(at(value, step), rest, next);
  if (typeof step === 'number') {
    const list = Array.isArray(value) ? [...value] : [];
    if (inner === undefined) list.splice(step, 1);
    else list[step] = inner;
    return list;
  }
  const others = Object.entries(isRecord(value) ? value : {}).filter(([name]) => name !== step);
  if (inner === undefined) return Object.fromEntries(others);
  // A member that is there keeps its place, so that the text beside the form does not jump.
  if (isRecord(value) && Object.hasOwn(value, step)) return { ...value, [step]: inner };
  return { ...Object.fromEntries(others), [step]: inner };
}
