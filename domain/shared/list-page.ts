import { z } from 'zod';

export const MAX_PAGE_ENTRIES = 500;

/** The query parameter that says how many entries a page has. */
export const pageLimit = (initial: number) => z.coerce.number().int().min(1).max(MAX_PAGE_ENTRIES).default(initial);

const matching = (form: RegExp, text = z.string()) => text.regex(form, 'take the cursor from the link of the page before');
const described = <T extends z.ZodType>(cursor: T) => cursor.optional().describe('From the `next` link of the page before');

/** The query parameter that says where a page begins. */
export const textCursor = (form: RegExp, text?: z.ZodString) => described(matching(form, text));
/** The same, where it is a number. */
export const numberCursor = (form: RegExp) => described(matching(form).transform(Number));
