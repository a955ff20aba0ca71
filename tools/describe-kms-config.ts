import { z } from 'zod';
import { KmsConfigSchema, KmsProviderSchema, VaultAuthSchema } from '../config/kms-config.ts';

type Row = { readonly places: string[]; readonly name: string; readonly defaultValue: string; readonly meaning: string };

/** @returns the list of docs/reference/key-stores.md, generated from the schema that parses the configuration. */
export function describeKmsConfig(): string {
  const rows: Row[] = [];
  const add = (of: string, shape: z.core.$ZodLooseShape) => {
    for (const [name, schema] of Object.entries(shape) as [string, z.ZodType][]) {
      if (isConstant(schema)) continue;
      const meaning = schema.description ?? '';
      const defaultValue = defaultOf(schema);
      const sameRow = rows.find((row) => row.name === name && row.defaultValue === defaultValue && row.meaning === meaning);
      if (sameRow === undefined) rows.push({ places: [of], name, defaultValue, meaning });
      else sameRow.places.push(of);
    }
  };
  add('the file', KmsConfigSchema.shape);
  for (const provider of KmsProviderSchema.options) add(`\`${provider.shape.type.value}\``, provider.shape);
  for (const auth of VaultAuthSchema.options) add(`\`auth\`, \`${auth.shape.method.value}\``, auth.shape);
  const groups = Map.groupBy(rows, ({ places }) => places.join(', '));
  const lists = [...groups].map(([places, group]) => `In ${places}:\n\n${group.map(describeProperty).join('\n')}`);
  return lists.join('\n\n');
}

const describeProperty = ({ name, defaultValue, meaning }: Row) => `- \`${name}\`${defaultValue}: ${meaning}`;

/** The page names `type` and `method` above the list: their value is the name of the place. */
function isConstant(schema: z.ZodType): boolean {
  return z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }).const !== undefined;
}

function defaultOf(schema: z.ZodType): string {
  const parsedDefault = schema.safeParse(undefined);
  if (!parsedDefault.success) return ' (required)';
  if (parsedDefault.data === undefined || typeof parsedDefault.data === 'object') return '';
  return ` (\`${String(parsedDefault.data)}\`)`;
}
