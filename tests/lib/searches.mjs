// Searches in the episodic memory, and entries to be found.
import { createEpisode } from './episodes.mjs';

/** Stores an entry, known since June, and gives the answer's body. */
export const store = (api, changes, options) => createEpisode(api, { created_at: '2026-06-01T00:00:00Z', ...changes }, options);

/** Searches and gives the answer's body. */
export const search = async (api, body, options) => (await api.post('/v1/episodic/search', body, { status: 200, ...options })).json;

/** A vector of `dim` numbers with a one at `place`, and other numbers where `also` says. */
export const axis = (dim, place, also = {}) => Object.assign(Array.from({ length: dim }, (_, i) => Number(i === place)), also);
