/** The words of a seeded ledger: names of companies and people, places, and what lines say. */

export const companyNames = [
  'Boulangerie Lefèvre',
  'Menuiserie Le Goff & Fils',
  'Garage de l’Étoile',
  'Transports Château-Thierry',
  'Électricité Générale Müller',
  'SARL "Chez Ginette"',
  'Imprimerie Nouvelle d’Alsace',
  'Cabinet Œuvrard',
  'Pépinières du Haras',
  'Société Générale de Façades',
  'Vins & Spiritueux Gaïa',
  'Ateliers Béranger',
  'Papeterie Saint-Éloi',
  'Nettoyage Clair\\Net',
  'Télécoms Île-de-France',
  'Assurances La Prévoyante',
  'Location Bâti’Rent',
  'Informatique Noël',
  'Fournitures Hôtelières du Midi',
  'Maçonnerie Ferreira',
  'Plomberie Žižka',
  'Café de la Gare ☕',
  'Traiteur Ñandú',
  'Studio Çelik 🎬',
] as const

export const companyForms = ['SARL', 'SAS', 'SA', 'EURL', 'SCI', 'SASU', 'SNC'] as const

export const firstNames = [
  'Zoé',
  'François',
  'Aïcha',
  'Jean-Loïc',
  'Maëlle',
  'Gérard',
  'Inès',
  'Théo',
  'Élodie',
  'Noémie',
  'Sœren',
  'Anaïs',
  'Hervé',
  'Chloé',
  'Yann',
  'Françoise',
] as const

export const lastNames = [
  'Lefèbvre',
  'D’Aubigné',
  'Müller',
  'Nguyễn',
  'Benoît',
  "O'Connor",
  'Sánchez',
  'Le Bihan',
  'Çetin',
  'Dupont',
  'Martin',
  'Kowalczyk',
  'Haddad',
  'Roussel',
  'Fontaine',
  'Guérin',
] as const

export const professions = [
  'Comptable',
  'Chargée d’études',
  'Vendeur',
  'Chef d’équipe',
  'Électricienne',
] as const

export const streetTypes = ['rue', 'avenue', 'boulevard', 'place', 'chemin', 'allée'] as const

export const streetNames = [
  'de la République',
  'Victor Hugo',
  'des Écoles',
  'du Général de Gaulle',
  'de l’Église',
  'Jean Jaurès',
  'des Frères Lumière',
  'du Pré aux Clercs',
] as const

export const cities = [
  ['75011', 'Paris'],
  ['69003', 'Lyon'],
  ['13006', 'Marseille'],
  ['31000', 'Toulouse'],
  ['44000', 'Nantes'],
  ['67000', 'Strasbourg'],
  ['42000', 'Saint-Étienne'],
  ['97200', 'Fort-de-France'],
  ['2A000', 'Ajaccio'],
  ['29200', 'Brest'],
] as const

export const contactRoles = ['Gérant', 'Comptabilité', 'Direction', 'Achats', 'SAV'] as const

/**
 * What readers of exports stumble over: quotes, backslashes, tab, line breaks, control characters, the line separator
 * of JavaScript, a byte-order mark, right-to-left text, emoji of several code points, a lone backslash-N as COPY
 * writes null.
 */
export const hostileTexts = [
  'réf. "A\\B"',
  'colonne\tsuivante',
  'première ligne\nseconde ligne',
  'retour\r\nchariot',
  'séparateur\u2028de lignes\u2029',
  'contrôle \u0001\u001f\u007f',
  '👩‍👩‍👧 𝔘nicode 🇫🇷',
  'שלום עולם',
  '\ufeffmarque d’ordre',
  '\\N',
  'C:\\temp\\new',
  "l'été d'\u00e0 c\u00f4t\u00e9",
  '</script><b>&amp;',
  '{"clé": "valeur", "t": "\\u0041"}',
  '1;2,3|4',
] as const

/** Comments of entries. */
export const comments = [
  'À vérifier avec le client',
  'Reçu par courriel, original à venir',
  'Montant « arrondi » selon accord du gérant',
  'Voir la pièce "annexe 2"\nLitige en cours',
  'Ventilation revue 👍',
] as const
