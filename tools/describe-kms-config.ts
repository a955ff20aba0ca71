import { z } from 'zod';
import { KmsConfigSchema, KmsProviderSchema, VaultAuthSchema } from '../config/kms-config.ts';

type Row = { readonly of: string[]; readonly name: string; readonly standard: string; readonly meaning: string };

/** The table of docs/key-stores.md, made of the schema that parses the configuration. */
export function describeKmsConfig(): string {
  const rows: Row[] = [];
  const add = (of: string, shape: z.core.$ZodLooseShape) => {
    for (const [name, schema] of Object.entries(shape) as [string, z.ZodType][]) {
      const meaning = schema.description ?? '';
      const standard = defaultOf(schema);
      const known = rows.find((row) => row.name === name && row.standard === standard && row.meaning === meaning);
      if (known === undefined) rows.push({ of: [of], name, standard, meaning });
      else known.of.push(of);
    }
  };
  add('the file', KmsConfigSchema.shape);
  for (const provider of KmsProviderSchema.options) add(`\`${provider.shape.type.value}\``, provider.shape);
  for (const auth of VaultAuthSchema.options) add(`\`auth\`, \`${auth.shape.method.value}\``, auth.shape);
  const lines = rows.map(({ of, name, standard, meaning }) => `| ${of.join(', ')} | \`${name}\` | ${standard} | ${meaning} |`);
  return ['| Of | Member | Default | Meaning |', '|---|---|---|---|', ...lines].join('\n');
}

function defaultOf(schema: z.ZodType): string {
  const { const: only } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  if (only !== undefined) return `is \`${String(only)}\``;
  const absent = schema.safeParse(undefined);
  if (!absent.success) return 'needed';
  if (absent.data === undefined || typeof absent.data === 'object') return '';
  return `\`${String(absent.data)}\``;
}
