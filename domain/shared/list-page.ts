import { z } from 'zod';

export const MAX_PAGE_ENTRIES = 500;

export const pageLimit = (initial: number) => z.coerce.number().int().min(1).max(MAX_PAGE_ENTRIES).default(initial);

const matching = (form: RegExp, text = z.string()) => text.regex(form, 'take the cursor from the link of the page before');
const described = <T extends z.ZodType>(cursor: T) => cursor.optional().describe('From the `next` link of the page before');

export const textCursor = (form: RegExp, text?: z.ZodString) => described(matching(form, text));
export const numberCursor = (form: RegExp) => described(matching(form).transform(Number));
