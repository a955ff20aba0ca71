import { z } from 'zod';
import { SettingsSchema } from '../config/settings-schema.ts';

/** @returns the list of docs/reference/settings.md, generated from the schema that parses the settings. */
export function describeSettings(): string {
  const rows = Object.entries(SettingsSchema.shape).flatMap(([name, schema]) => {
    const { description } = schema;
    if (description === undefined) return [];
    return [`- \`${name}\`${defaultOf(schema)}: ${description}`];
  });
  return rows.join('\n');
}

function defaultOf(schema: z.ZodType): string {
  const { defaultValue } = z.toJSONSchema(schema, { io: 'output', unrepresentable: 'any' }) as { defaultValue?: unknown };
  const value = defaultValue ?? (schema.safeParse(undefined).data as unknown);
  if (value === undefined || (Array.isArray(value) && value.length === 0)) return '';
  return ` (\`${String(value)}\`)`;
}
