import type { Field } from '../statement.ts';

/**
 * Composite value in the text form that PostgreSQL reads (manual, section 8.16.6); the driver cannot encode one. An absent field is null.
 */
export function rowLiteral(fields: readonly Field[]): string {
  return `(${fields.map(rowField).join(',')})`;
}

/** An array in the text form that PostgreSQL reads (manual, section 8.15.6). */
export function arrayLiteral(elements: readonly string[]): string {
  return `{${elements.map(quoted).join(',')}}`;
}

function rowField(field: Field): string {
  if (field === null) return '';
  if (typeof field === 'string') return quoted(field);
  if (typeof field === 'number') return String(field);
  if (typeof field === 'boolean') return field ? 't' : 'f';
  return quoted(arrayLiteral(field));
}

function quoted(text: string): string {
  // Sealed texts are the longest by far, and have neither.
  if (!text.includes('"') && !text.includes('\\')) return `"${text}"`;
  return `"${text.replace(/["\\]/g, '\\$&')}"`;
}
