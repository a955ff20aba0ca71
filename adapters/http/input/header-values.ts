import type { RawRequest } from '../route.ts';

/** Returns every field of this name unchanged; Node joins or drops repeated ones in `headers`. */
export function headerValues({ rawHeaders }: RawRequest, name: string): readonly string[] {
  const values: string[] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const [field, value] = [rawHeaders[i], rawHeaders[i + 1]];
    if (value !== undefined && field?.length === name.length && field.toLowerCase() === name) values.push(value);
  }
  return values;
}
